"""Bandwidth by nccl-tests' definition."""

import itertools

import pytest

from scalestudy.measure.bandwidth import SIZES, AllReduce, algorithm_bandwidth, bus_bandwidth, repeats


def test_messages_grow_fourfold_from_one_kibibyte_to_64_mebibytes():
    assert (SIZES[0], SIZES[-1]) == (1024, 64 * 2**20)
    assert {later // earlier for earlier, later in itertools.pairwise(SIZES)} == {4}


@pytest.mark.parametrize(("ranks", "factor"), [(1, 0.0), (2, 1.0), (4, 1.5), (8, 1.75)])
def test_the_bus_carries_two_n_minus_one_nths_of_the_message(ranks, factor):
    assert bus_bandwidth(1000, 0.5, ranks) == pytest.approx(2000 * factor)


def test_the_algorithm_bandwidth_is_size_by_time():
    assert algorithm_bandwidth(1000, 0.5) == 2000


def test_every_size_is_warmed_up_and_repeated():
    assert all(before > 0 and times >= 5 for before, times in map(repeats, SIZES))


def test_an_all_reduce_of_two_carries_each_byte_once_and_of_many_almost_twice():
    assert AllReduce("ring", 2, 1000, 0.5).bus_bandwidth == 2000
    assert AllReduce("ring", 8, 1000, 0.5).bus_bandwidth == 3500
