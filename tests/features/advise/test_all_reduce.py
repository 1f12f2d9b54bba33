"""Costs of all-reduces, and links fitted to timings with a known answer."""

import numpy as np
import pytest

from scalestudy.features.advise.all_reduce import (
    ALGORITHMS,
    Fabric,
    Link,
    TimedAllReduce,
    fit_link,
    ring,
    ring_or_tree,
    tree,
)

CARD, NVLINK = Link(10e-6, 10e9), Link(2e-6, 100e9)


def fabric(nodes, local):
    return Fabric(nodes, local, CARD, NVLINK)


def test_a_ring_takes_two_steps_less_than_twice_the_ranks_of_an_nth_each():
    assert ring(8e6, 4, fabric(4, 1)) == pytest.approx(6 * (10e-6 + 2e6 / 10e9))


def test_within_a_node_its_own_links_count_and_across_nodes_the_slower_ones():
    assert ring(8e6, 4, fabric(1, 4)) == pytest.approx(6 * (2e-6 + 2e6 / 100e9))
    assert ring(8e6, 8, fabric(2, 4)) == pytest.approx(14 * (10e-6 + 1e6 / 10e9))


def test_a_trees_latency_grows_with_the_logarithm_and_a_rings_with_the_ranks():
    small = 4.0
    assert tree(small, 1024, fabric(1024, 1)) == pytest.approx(2 * 10 * 10e-6, rel=1e-3)
    assert ring(small, 1024, fabric(1024, 1)) == pytest.approx(2 * 1023 * 10e-6, rel=1e-3)
    assert tree(small, 1024, fabric(128, 8)) == pytest.approx(2 * (7 * 10e-6 + 3 * 2e-6), rel=1e-3)


def test_the_quicker_of_ring_and_tree_is_the_ring_for_few_ranks_and_the_tree_for_many():
    size = 100e6
    assert ring_or_tree(size, 4, fabric(4, 1)) == ring(size, 4, fabric(4, 1))
    assert ring_or_tree(size, 4096, fabric(4096, 1)) == tree(size, 4096, fabric(4096, 1))


def test_what_does_not_grow_with_the_ranks_is_paid_once():
    slow = Fabric(4, 1, Link(0.0, 1e12, 2.5e-3), NVLINK)
    assert ring(0.0, 4, slow) == pytest.approx(2.5e-3)
    assert tree(0.0, 4, slow) == pytest.approx(2.5e-3)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_worker_exchanges_nothing_and_no_algorithm_beats_the_bytes_it_must_send(name):
    assert ALGORITHMS[name](1e9, 1, fabric(1, 1)) == 0
    for ranks in (2, 3, 64, 4096):
        least = (ranks - 1) / ranks * 1e9 / CARD.bandwidth
        assert ALGORITHMS[name](1e9, ranks, fabric(ranks, 1)) >= least


SIZES = [1024 * 4**step for step in range(8)]


def timings(ranks, link, noise=0.0):
    random = np.random.default_rng(1)
    fabric = Fabric(ranks, 1, link, link)
    return [
        TimedAllReduce(
            "made",
            ranks,
            ranks,
            size,
            float(ring(float(size), ranks, fabric) * np.exp(noise * random.standard_normal())),
        )
        for size in SIZES
    ]


def test_a_ring_gives_its_link_back():
    found = fit_link(timings(4, Link(50e-6, 1e9)), "made")
    assert found.bandwidth.value == pytest.approx(1e9)
    assert found.small.value == pytest.approx(6 * 50e-6)
    assert found.ranks == 4


def test_noise_widens_the_range_and_the_truth_stays_in_it():
    exact, noisy = fit_link(timings(4, Link(5e-5, 1e9)), ""), fit_link(timings(4, Link(5e-5, 1e9), 0.2), "")
    assert noisy.bandwidth.low < 1e9 < noisy.bandwidth.high
    assert noisy.bandwidth.high / noisy.bandwidth.low > exact.bandwidth.high / exact.bandwidth.low


def test_of_one_number_of_ranks_it_is_not_known_what_grows_with_them():
    found = fit_link(timings(2, Link(5e-5, 1e9)), "")
    assert (found.hops.low, found.hops.high) == (0.0, 1.0)
    assert found.of(found.small.value, 0.0, 1e9) == Link(0.0, 1e9, pytest.approx(1e-4))


def test_two_numbers_of_ranks_tell_latency_from_overhead():
    link = Link(20e-6, 1e9, 2.5e-3)
    found = fit_link([*timings(2, link), *timings(8, link)], "")
    assert found.hops.low == found.hops.high
    back = found.of(found.small.value, found.hops.value, found.bandwidth.value)
    assert back.latency == pytest.approx(20e-6, rel=1e-3)
    assert back.overhead == pytest.approx(2.5e-3, rel=1e-3)


def test_one_size_and_one_rank_tell_nothing():
    assert fit_link([TimedAllReduce("made", 4, 4, 1024, 1e-3)], "") is None
    assert fit_link([TimedAllReduce("made", 1, 1, size, 1e-3) for size in SIZES], "") is None
    assert fit_link([], "") is None


def test_times_that_do_not_grow_with_the_size_tell_no_bandwidth():
    assert fit_link([TimedAllReduce("made", 2, 2, size, 1 / size) for size in SIZES], "") is None


def test_sizes_near_the_messages_that_matter_count_more():
    free = [
        row._replace(seconds=row.seconds / (3 if row.bytes < 2**20 else 1))
        for row in timings(2, Link(5e-5, 1e9))
    ]
    alike, near = fit_link(free, "").bandwidth.value, fit_link(free, "", near=2**23).bandwidth.value
    assert abs(near / 1e9 - 1) < abs(alike / 1e9 - 1)
