"""All-reduces against sums worked out by hand, and against published figures."""

import pytest

from scalestudy.features.estimate.cost import (
    ALGORITHMS,
    Fabric,
    Link,
    halving,
    hierarchical,
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


def test_short_messages_are_doubled_and_long_ones_halved():
    assert halving(8.0, 16, fabric(16, 1)) == pytest.approx(4 * (10e-6 + 8 / 10e9))
    long = 2 * 4 * 10e-6 + 2 * 15 / 16 * 1e9 / 10e9
    assert halving(1e9, 16, fabric(16, 1)) == pytest.approx(long)


def test_in_a_hierarchy_the_nodes_card_carries_the_message_once_in_a_ring_of_nodes():
    within = 2 * 7 * (2e-6 + 8e6 / 8 / 100e9)
    across = 2 * 3 * (10e-6 + 8e6 / 4 / 10e9)
    assert hierarchical(8e6, 32, fabric(4, 8)) == pytest.approx(within + across)
    assert hierarchical(8e6, 8, fabric(1, 8)) == pytest.approx(within)
    assert hierarchical(8e6, 4, fabric(4, 1)) == pytest.approx(across)


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
