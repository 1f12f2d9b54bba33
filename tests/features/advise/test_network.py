"""The network as stated and as measured, and the route that a strategy takes over it."""

import json

import pytest

from scalestudy.features.advise.all_reduce import ALGORITHMS, Fabric, TimedAllReduce
from scalestudy.features.advise.network import KnownNetwork, StatedLink, collectives_of, network_of, route_of
from scalestudy.util.errors import UserError

RESNET = 102e6
ETHERNET = StatedLink(12.5e9, 2e-6, "100 Gb/s")
NVSWITCH = StatedLink(100e9, 3e-6, "NVSwitch")


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
    assert route_of(network, ["ring"]).across.source == "100 Gb/s"


def test_a_stated_card_carries_no_more_than_the_collectives_own_code():
    fast = route_of(KnownNetwork(across=ETHERNET), ["ring"]).across.bandwidth
    slow = route_of(KnownNetwork(across=StatedLink(12.5e6, 1e-3, "100 Mbit")), ["ring"]).across.bandwidth
    assert fast.value == 1e9
    assert slow.value == pytest.approx(0.85 * 12.5e6) and slow.high == 12.5e6


@pytest.mark.parametrize(
    ("implementation", "communication", "gpu", "first"),
    [
        ("multiworker", "auto", True, "nccl"), ("multiworker", "auto", False, "auto"),
        ("multiworker", "ring", True, "ring"), ("horovod", "auto", False, "horovod-gloo"),
        ("horovod", "mpi", True, "horovod-mpi"), ("horovod", "auto", True, "horovod-nccl"),
        ("mirrored", "auto", True, "nccl"), ("mirrored", "auto", False, "auto"),
    ],
)  # fmt: skip
def test_each_strategy_has_its_collective(implementation, communication, gpu, first):
    assert collectives_of(implementation, communication, gpu=gpu)[0] == first


def test_bandwidth_and_latency_are_stated_in_one_text(tmp_path):
    network = network_of(["100Gbit,2us,per_node=4,node_bandwidth=300GB,node_latency=5us"], tmp_path)
    assert (network.across.bandwidth, network.across.latency) == (12.5e9, 2e-6)
    assert (network.within.bandwidth, network.within.latency) == (300e9, pytest.approx(5e-6))
    assert network.workers_per_node == 4
    assert network_of(["1Gbit,50us"], tmp_path).workers_per_node == 1


@pytest.mark.parametrize(
    "text",
    ["fast,2us", "1Gbit,per_node=2", "1Gbit,2us,per_node=0", "1Gbit,2us,per_node=x", "1Gbit,2us,mtu=9"],
)
def test_what_states_no_network_is_refused(text, tmp_path):
    with pytest.raises(UserError, match="100Gbit,2us"):
        network_of([text], tmp_path)


def test_a_site_profile_states_it_or_is_refused(tmp_path):
    site = tmp_path / "site.toml"
    site.write_text(
        'cpus_per_node = 8\ntasks_per_node = 4\nnetwork_bandwidth = "100Gbit"\nnetwork_latency = "2us"\n'
    )
    network = network_of(["site.toml"], tmp_path)
    assert (network.across.source, network.per_node) == ("stated by the site profile site", 4)
    site.write_text("cpus_per_node = 8\n")
    with pytest.raises(UserError, match="network_bandwidth"):
        network_of(["site.toml"], tmp_path)


def timed(collective, **more):
    return [
        {"collective": collective, "ranks": 2, "bytes": size, "seconds": 1e-4 + size / 1e9, **more}
        for size in (1024, 2**20, 2**24)
    ]


def test_a_checks_timings_are_the_network_and_a_topologys_a_nodes_links(tmp_path):
    check, topology = tmp_path / "check.json", tmp_path / "topology.json"
    check.write_text(json.dumps({"schema_version": 2, "lines": [], "bandwidth": timed("ring", hosts=2)}))
    topology.write_text(json.dumps({"all_reduce": timed("TensorFlow RING")}))
    network = network_of([str(check), str(topology), "per_node=2"], tmp_path)
    route = route_of(network, ["ring"])
    assert route.across is not None and route.within is not None
    assert route.across.source == "check.json and topology.json"


@pytest.mark.parametrize("text", [None, "{}", '{"bandwidth": [{}]}', '{"bandwidth": []}'])
def test_a_file_without_timings_is_refused(text, tmp_path):
    file = tmp_path / "check.json"
    if text:
        file.write_text(text)
    with pytest.raises(UserError, match=r"check\.json"):
        network_of([str(file)], tmp_path)
