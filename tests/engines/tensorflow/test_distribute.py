"""Replicas and communication of TensorFlow's own strategies, and workers without exchange."""

import numpy as np
import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow import distribute
from scalestudy.engines.tensorflow.distribute import MirroredReplicas
from scalestudy.engines.tensorflow.replicas import (
    CompiledReplicas,
    TensorGroup,
    without_exchange,
)

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(("communication", "halves"), [("nccl", True), ("ring", False)])
def test_gradients_go_in_halves_where_only_the_first_sum_is_hidden(
    framework, communication, halves
):
    assert (
        MirroredReplicas(None, TensorGroup(communication=communication), 2).in_halves
        == halves
    )


class Summing(CompiledReplicas):
    """Doubles each value, as a sum over two equal workers does."""

    def sum_gradients(self, gradients, buckets):
        return [2 * each for each in gradients]

    def sync_sum(self, tensor):
        return 2 * tensor


def test_silent_workers_keep_their_gradients_and_the_others_still_sum():
    replicas = Summing(TensorGroup(), 2, slices=[(0, 1)])
    joined = Joined(replicas.group, replicas)
    quiet = without_exchange(joined).replicas
    assert quiet.exchange([np.ones(2)], [(0,)])[0].tolist() == [1, 1]
    assert replicas.sum_gradients([np.ones(2)], [(0,)])[0].tolist() == [2, 2]


def test_what_layers_sum_over_workers_keeps_its_size():
    replicas = Summing(TensorGroup(), 3, slices=[(0, 1)])
    assert (
        without_exchange(Joined(replicas.group, replicas)).replicas.layer_sum(1.5)
        == 4.5
    )


def test_a_step_of_silent_workers_applies_each_ones_own_gradients():
    replicas = Summing(TensorGroup(), 2, slices=[(0, 1)])
    applied = []
    quiet = without_exchange(Joined(replicas.group, replicas)).replicas
    losses = quiet.step(
        lambda part: ([part], 7.0), applied.append, [3.0], None, buckets=[(0,)]
    )
    assert (applied, losses) == ([[3.0]], 7.0)


@pytest.mark.parametrize(
    ("communication", "device", "told"),
    [
        ("auto", "gpu", "nccl"),
        ("auto", "cpu", "auto"),
        ("ring", "gpu", "ring"),
        ("ring", "cpu", "ring"),
        ("nccl", "gpu", "nccl"),
    ],
)
def test_on_gpus_nccl_is_asked_for_unless_the_study_says_otherwise(
    framework, monkeypatch, communication, device, told
):
    given = {}
    monkeypatch.setattr(
        framework.distribute,
        "MultiWorkerMirroredStrategy",
        lambda **named: given.update(named),
    )
    placement = Placement(0, 2, 0, 2, 0, ("localhost",) * 2, "test")
    group, _ = distribute.join_multiworker(
        placement, workers=2, device=device, communication=communication
    )
    implementation = given["communication_options"].implementation
    assert (
        implementation
        == framework.distribute.experimental.CommunicationImplementation[told.upper()]
    )
    assert group.communication == told


def test_what_ranks_tell_each_other_waits_for_no_gpu(framework):
    group = distribute.CollectiveGroup(
        None, Placement(0, 2, 0, 2, 0, ("localhost",) * 2, "test"), "nccl"
    )
    sums = [
        framework.function(
            lambda value, number=number: group._ring(value, number)
        ).get_concrete_function(framework.TensorSpec([2], framework.float64))
        for number in range(2)
    ]
    nodes = [
        next(
            node
            for node in graph.graph.get_operations()
            if node.type == "CollectiveReduceV2"
        )
        for graph in sums
    ]
    assert all(node.device.endswith("CPU:0") for node in nodes)
    assert {node.get_attr("communication_hint") for node in nodes} == {b"ring"}
