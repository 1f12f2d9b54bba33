"""The network as stated and as measured, and the route that a strategy takes over it."""

import json

import numpy as np
import pytest

from scalestudy.features.advise.network import (
    ALGORITHMS,
    Fabric,
    KnownNetwork,
    Link,
    StatedLink,
    TimedAllReduce,
    collectives_of,
    fit_link,
    network_of,
    ring,
    ring_or_tree,
    route_of,
    tree,
)
from scalestudy.util.errors import UserError

CARD, NVLINK = Link(10e-6, 10e9), Link(2e-6, 100e9)


def fabric(nodes, local):
    return Fabric(nodes, local, CARD, NVLINK)


SLOW = Fabric(4, 1, Link(0.0, 1e12, 2.5e-3), NVLINK)


@pytest.mark.parametrize(
    ("algorithm", "size", "ranks", "links", "expected"),
    [
        # Two steps less than twice the ranks, of an n-th each, over the slowest link in use.
        (ring, 8e6, 4, fabric(4, 1), 6 * (10e-6 + 2e6 / 10e9)),
        (ring, 8e6, 4, fabric(1, 4), 6 * (2e-6 + 2e6 / 100e9)),
        (ring, 8e6, 8, fabric(2, 4), 14 * (10e-6 + 1e6 / 10e9)),
        # A tree's latency grows with the logarithm, a ring's with the ranks.
        (tree, 4.0, 1024, fabric(1024, 1), 2 * 10 * 10e-6),
        (ring, 4.0, 1024, fabric(1024, 1), 2 * 1023 * 10e-6),
        (tree, 4.0, 1024, fabric(128, 8), 2 * (7 * 10e-6 + 3 * 2e-6)),
        # What does not grow with the ranks is paid once.
        (ring, 0.0, 4, SLOW, 2.5e-3),
        (tree, 0.0, 4, SLOW, 2.5e-3),
    ],
)
def test_the_time_of_an_all_reduce(algorithm, size, ranks, links, expected):
    assert algorithm(size, ranks, links) == pytest.approx(expected, rel=1e-3)


def test_the_quicker_of_ring_and_tree_is_the_ring_for_few_ranks_and_the_tree_for_many():
    for ranks, quicker in ((4, ring), (4096, tree)):
        links = fabric(ranks, 1)
        assert ring_or_tree(100e6, ranks, links) == quicker(100e6, ranks, links)


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


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [TimedAllReduce("made", 4, 4, 1024, 1e-3)],
        [TimedAllReduce("made", 1, 1, size, 1e-3) for size in SIZES],
        [TimedAllReduce("made", 2, 2, size, 1 / size) for size in SIZES],
    ],
    ids=["none", "one size", "one rank", "times that do not grow"],
)
def test_these_timings_tell_nothing(rows):
    assert fit_link(rows, "") is None


def test_sizes_near_the_messages_that_matter_count_more():
    free = [
        row._replace(seconds=row.seconds / (3 if row.bytes < 2**20 else 1))
        for row in timings(2, Link(5e-5, 1e9))
    ]
    alike, near = fit_link(free, "").bandwidth.value, fit_link(free, "", near=2**23).bandwidth.value
    assert abs(near / 1e9 - 1) < abs(alike / 1e9 - 1)


RESNET = 102e6
ETHERNET = StatedLink(12.5e9, 2e-6)
NVSWITCH = StatedLink(100e9, 3e-6)


def exchange(network, collective, nodes, local):
    route = route_of(network, [collective])
    links = [
        known.of(known.small.value, known.hops.value, known.bandwidth.value)
        for known in (route.across or route.within, route.within or route.across)
    ]
    return float(ALGORITHMS[route.algorithm](RESNET, nodes * local, Fabric(nodes, local, *links)))


@pytest.mark.parametrize(
    ("collective", "nodes", "local", "published"),
    [
        ("nccl", 1, 8, 2.4e-3),  # 8 A100 with NVSwitch
        ("nccl", 14, 1, 18e-3),  # 14 V100 with 100 Gb/s each
        ("ring", 14, 1, 190e-3),  # the same over gRPC
        ("nccl", 8, 8, 20e-3),  # 64 A100, one network card per node
    ],
)
def test_exchange_of_resnet50_is_of_the_order_that_was_estimated_for_these_machines(
    collective, nodes, local, published
):
    network = KnownNetwork(across=ETHERNET, within=NVSWITCH)
    assert exchange(network, collective, nodes, local) == pytest.approx(published, rel=0.25)


def rows(collective, ranks, hosts, seconds=1e-3):
    return [
        TimedAllReduce(collective, ranks, hosts, size, seconds * (1 + size / 1e6))
        for size in (1024, 2**20, 2**22)
    ]


def test_sums_over_several_hosts_are_the_network_and_those_on_one_host_its_own_links():
    network = KnownNetwork(measured=(*rows("ring", 8, 2), *rows("ring", 4, 1, 1e-4)), sources=("check.json",))
    route = route_of(network, ["ring"])
    assert route.across.small.value > route.within.small.value
    assert route.across.source == "check.json"
    assert network.workers_per_node == 4


def test_the_first_of_its_collectives_that_was_measured_counts():
    network = KnownNetwork(measured=tuple(rows("horovod-gloo", 2, 2)))
    assert route_of(network, ["horovod-nccl", "horovod-gloo"]).collective == "horovod-gloo"
    assert not route_of(network, ["ring"]).known


def test_what_is_stated_counts_before_what_was_measured():
    network = KnownNetwork(measured=tuple(rows("ring", 2, 2)), across=ETHERNET)
    assert route_of(network, ["ring"]).across.source == "stated with --network"


def test_a_stated_card_carries_no_more_than_the_collectives_own_code():
    fast = route_of(KnownNetwork(across=ETHERNET), ["ring"]).across.bandwidth
    slow = route_of(KnownNetwork(across=StatedLink(12.5e6, 1e-3)), ["ring"]).across.bandwidth
    assert fast.value == 1e9
    assert slow.value == pytest.approx(0.85 * 12.5e6) and slow.high == 12.5e6


@pytest.mark.parametrize(
    ("implementation", "communication", "gpu", "first"),
    [
        ("multiworker", "auto", True, "nccl"),
        ("multiworker", "auto", False, "auto"),
        ("multiworker", "ring", True, "ring"),
        ("horovod", "auto", False, "horovod-gloo"),
        ("horovod", "mpi", True, "horovod-mpi"),
        ("horovod", "auto", True, "horovod-nccl"),
        ("mirrored", "auto", True, "nccl"),
        ("mirrored", "auto", False, "auto"),
    ],
)
def test_each_strategy_has_its_collective(implementation, communication, gpu, first):
    assert collectives_of(implementation, communication, gpu=gpu)[0] == first


def test_bandwidth_and_latency_are_stated_in_one_text():
    network = network_of(["100Gbit,2us,per_node=4,node_bandwidth=300GB,node_latency=5us"])
    assert (network.across.bandwidth, network.across.latency) == (12.5e9, 2e-6)
    assert (network.within.bandwidth, network.within.latency) == (300e9, pytest.approx(5e-6))
    assert network.workers_per_node == 4
    assert network_of(["1Gbit,50us"]).workers_per_node == 1


@pytest.mark.parametrize(
    "text",
    ["fast,2us", "1Gbit,per_node=2", "1Gbit,2us,per_node=0", "1Gbit,2us,per_node=x", "1Gbit,2us,mtu=9"],
)
def test_what_states_no_network_is_refused(text):
    with pytest.raises(UserError, match="100Gbit,2us"):
        network_of([text])


def timed(collective, **more):
    return [
        {"collective": collective, "ranks": 2, "bytes": size, "seconds": 1e-4 + size / 1e9, **more}
        for size in (1024, 2**20, 2**24)
    ]


def test_timings_of_checks_are_the_network(tmp_path):
    check, node = tmp_path / "check.json", tmp_path / "node.json"
    check.write_text(json.dumps({"schema_version": 2, "lines": [], "bandwidth": timed("ring", hosts=2)}))
    node.write_text(json.dumps({"bandwidth": timed("ring", hosts=1)}))
    network = network_of([str(check), str(node), "per_node=2"])
    route = route_of(network, ["ring"])
    assert route.across is not None and route.within is not None
    assert route.across.source == "check.json and node.json"


@pytest.mark.parametrize("text", [None, "{}", '{"bandwidth": [{}]}', '{"bandwidth": []}'])
def test_a_file_without_timings_is_refused(text, tmp_path):
    file = tmp_path / "check.json"
    if text:
        file.write_text(text)
    with pytest.raises(UserError, match=r"check\.json"):
        network_of([str(file)])
