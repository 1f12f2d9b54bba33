"""The communication of multi-worker runs."""

import pytest

from scalestudy.cluster.placement import Placement

pytestmark = pytest.mark.engine


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
    from scalestudy.engines.tensorflow import distribute

    given = {}
    monkeypatch.setattr(
        framework.distribute, "MultiWorkerMirroredStrategy", lambda **named: given.update(named)
    )
    placement = Placement(0, 2, 0, 2, 0, ("localhost",) * 2, "test")
    group, _ = distribute.join_multiworker(placement, workers=2, device=device, communication=communication)
    implementation = given["communication_options"].implementation
    assert implementation == framework.distribute.experimental.CommunicationImplementation[told.upper()]
    assert group.communication == told


def test_what_ranks_tell_each_other_waits_for_no_gpu(framework):
    from scalestudy.engines.tensorflow import distribute

    group = distribute.CollectiveGroup(None, Placement(0, 2, 0, 2, 0, ("localhost",) * 2, "test"), "nccl")
    sums = [
        framework.function(lambda value, number=number: group._ring(value, number)).get_concrete_function(
            framework.TensorSpec([2], framework.float64)
        )
        for number in range(2)
    ]
    nodes = [
        next(node for node in graph.graph.get_operations() if node.type == "CollectiveReduceV2")
        for graph in sums
    ]
    assert all(node.device.endswith("CPU:0") for node in nodes)
    assert {node.get_attr("communication_hint") for node in nodes} == {b"ring"}
