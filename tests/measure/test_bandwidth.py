"""Bandwidth as nccl-tests define it."""

import itertools

import pytest

from scalestudy.engines.exchange_trial import (
    SIZES,
    bus_bandwidth,
    largest,
    too_slow,
)


def test_messages_grow_fourfold_from_one_kibibyte_to_one_gibibyte():
    assert (SIZES[0], SIZES[-1]) == (1024, 2**30)
    assert {later // earlier for earlier, later in itertools.pairwise(SIZES)} == {4}


@pytest.mark.parametrize(("ranks", "factor"), [(1, 0.0), (2, 1.0), (4, 1.5), (8, 1.75)])
def test_the_bus_carries_two_n_minus_one_nths_of_the_message(ranks, factor):
    assert bus_bandwidth(1000, 0.5, ranks) == pytest.approx(2000 * factor)


def test_the_largest_message_follows_from_the_device_and_its_memory():
    assert largest("cpu", None) == 64 * 2**20
    assert largest("gpu", 80 * 2**30) > SIZES[-1]
    assert largest("gpu", 5 * 2**30) < SIZES[-1], "a MIG instance"
    assert largest("gpu", None) == SIZES[-1]


def test_a_size_that_would_take_too_long_is_left_out():
    assert too_slow(0.2, 1, 20) and not too_slow(0.1, 1, 20)
