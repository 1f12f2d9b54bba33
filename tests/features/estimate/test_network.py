"""Which links a strategy uses, and published estimates of exposed exchange from links as stated."""

import pytest

from scalestudy.features.estimate.cost import ALGORITHMS, Fabric
from scalestudy.features.estimate.network import Measured, Network, Stated, collectives_of, path_of

RESNET = 102e6
ETHERNET = Stated(12.5e9, 2e-6, "100 Gb/s")
NVSWITCH = Stated(100e9, 3e-6, "NVSwitch")


def exchange(network, collective, nodes, local):
    path = path_of(network, [collective])
    links = [
        known.of(known.small.value, known.hops.value, known.bandwidth.value)
        for known in (path.across or path.within, path.within or path.across)
    ]
    return float(ALGORITHMS[path.algorithm](RESNET, nodes * local, Fabric(nodes, local, *links)))


@pytest.mark.parametrize(
    ("collective", "nodes", "local", "published"),
    [
        ("nccl", 1, 8, 2.4e-3),  # 8 A100 with NVSwitch
        ("nccl", 14, 1, 18e-3),  # 14 V100 with 100 Gb/s each
        ("ring", 14, 1, 190e-3),  # the same by gRPC
        ("nccl", 8, 8, 20e-3),  # 64 A100 with one card a node
    ],
)
def test_exchange_of_resnet50_is_of_the_order_that_was_estimated_for_these_machines(
    collective, nodes, local, published
):
    network = Network(across=ETHERNET, within=NVSWITCH)
    assert exchange(network, collective, nodes, local) == pytest.approx(published, rel=0.25)


def rows(collective, ranks, hosts, seconds=1e-3):
    return [
        Measured(collective, ranks, hosts, size, seconds * (1 + size / 1e6)) for size in (1024, 2**20, 2**22)
    ]


def test_sums_over_several_hosts_are_the_network_and_those_on_one_host_its_own_links():
    network = Network(measured=(*rows("ring", 8, 2), *rows("ring", 4, 1, 1e-4)), sources=("check.json",))
    path = path_of(network, ["ring"])
    assert path.across.small.value > path.within.small.value
    assert path.across.source == "check.json"
    assert network.workers_of_a_node == 4


def test_the_first_of_its_collectives_that_was_measured_counts():
    network = Network(measured=tuple(rows("horovod-gloo", 2, 2)))
    assert path_of(network, ["horovod-nccl", "horovod-gloo"]).collective == "horovod-gloo"
    alone = path_of(network, ["ring"])
    assert not alone.known and "no check has timed ring" in alone.notes


def test_what_is_stated_counts_before_what_was_measured():
    network = Network(measured=tuple(rows("ring", 2, 2)), across=ETHERNET)
    assert path_of(network, ["ring"]).across.source == "100 Gb/s"


def test_a_stated_card_carries_no_more_than_the_collectives_own_code():
    fast = path_of(Network(across=ETHERNET), ["ring"]).across.bandwidth
    slow = path_of(Network(across=Stated(12.5e6, 1e-3, "100 Mbit")), ["ring"]).across.bandwidth
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
