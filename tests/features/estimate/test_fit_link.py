"""Latency and bandwidth from timed all-reduces with a known answer."""

import numpy as np
import pytest

from scalestudy.features.estimate.cost import Fabric, Link, ring
from scalestudy.features.estimate.fit_link import Timed, fit_link

SIZES = [1024 * 4**step for step in range(8)]


def timings(ranks, link, noise=0.0):
    random = np.random.default_rng(1)
    fabric = Fabric(ranks, 1, link, link)
    return [
        Timed(ranks, size, float(ring(float(size), ranks, fabric) * np.exp(noise * random.standard_normal())))
        for size in SIZES
    ]


def test_a_ring_gives_its_link_back():
    found = fit_link(timings(4, Link(50e-6, 1e9)), "made")
    assert found.bandwidth.value == pytest.approx(1e9)
    assert found.small.value == pytest.approx(6 * 50e-6)
    assert found.ranks == 4 and found.measured


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
    assert fit_link([Timed(4, 1024, 1e-3)], "") is None
    assert fit_link([Timed(1, size, 1e-3) for size in SIZES], "") is None
    assert fit_link([], "") is None


def test_times_that_do_not_grow_with_the_size_tell_no_bandwidth():
    assert fit_link([Timed(2, size, 1 / size) for size in SIZES], "") is None


def test_sizes_near_the_messages_that_matter_count_more():
    free = [Timed(2, each.bytes, each.seconds / (3 if each.bytes < 2**20 else 1)) for each in
            timings(2, Link(5e-5, 1e9))]  # fmt: skip
    alike, near = fit_link(free, "").bandwidth.value, fit_link(free, "", near=2**23).bandwidth.value
    assert abs(near / 1e9 - 1) < abs(alike / 1e9 - 1)
