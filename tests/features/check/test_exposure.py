"""Who else reaches the workers' ports, and what is said of it."""

import pytest

from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.features.check.exposure import judge_exposure
from scalestudy.launch.local.reserve import NETWORK


def judge(needs=("auto", "horovod"), **variables):
    return judge_exposure("n1", variables, ENGINE, needs=needs, port=20000)


def test_in_a_network_of_their_own_nobody_else_reaches_them():
    line = judge(**{NETWORK: "4711"})
    assert (line.status, line.action) == ("pass", "")


@pytest.mark.parametrize(
    ("network", "reason"),
    [("Operation not permitted", "Operation not permitted"), ("shared", "NETWORK says")],
)
def test_without_one_the_reason_and_the_danger_are_named(network, reason):
    line = judge(**{NETWORK: network})
    assert line.status == "warn"
    assert reason in line.seen
    assert "TensorFlow's workers act with your rights" in line.seen
    assert "end a run" in judge(("horovod",), **{NETWORK: network}).seen


@pytest.mark.parametrize("needs", [None, ("ring",), ("nccl", "horovod")])
def test_on_a_cluster_tensorflow_listens_to_everybody(needs):
    line = judge(needs)
    assert line.status == "warn"
    assert "from port 20000 on" in line.seen
    assert "firewall" in line.action


def test_on_a_cluster_horovod_alone_asks_for_the_secret():
    assert judge(("horovod",)).status == "pass"
