"""Collectives, compared with the strategies that use them; how they are timed, and their bandwidth."""

from typing import get_args, get_type_hints

import pytest
import tensorflow as tf

from scalestudy.cluster.placement import Placement
from scalestudy.config.settings import LaunchSettings
from scalestudy.engines import exchange_trial
from scalestudy.engines.tensorflow.replicas import TensorGroup
from scalestudy.engines.tensorflow.trial import TensorFlowTrial
from scalestudy.plugins.engines import all_collectives, collective
from scalestudy.util.errors import RunError

pytestmark = pytest.mark.engine

COLLECTIVES = all_collectives()


def test_each_has_a_name_and_a_label_of_its_own():
    assert len({each.name for each in COLLECTIVES}) == len(COLLECTIVES)
    assert len({each.label for each in COLLECTIVES}) == len(COLLECTIVES)
    with pytest.raises(KeyError):
        collective("smoke signals")


def test_each_is_of_a_strategy_with_processes_that_meet():
    assert all(each.rendezvous for each in COLLECTIVES)


def test_every_communication_of_a_study_file_is_tried():
    named = get_args(get_type_hints(LaunchSettings)["communication"])
    assert {each.communication for each in COLLECTIVES} - {None} == set(named)


class Counting(TensorGroup):
    """One process whose sums take one second each."""

    def __init__(self) -> None:
        super().__init__()
        self.sums, self.now = 0, 0.0

    def tensor_sum(self, tensor):
        def summed(value):
            self.sums += 1
            self.now += 1.0
            return value

        return tf.ensure_shape(
            tf.numpy_function(summed, [tensor], tensor.dtype), tensor.shape
        )


def test_a_sums_time_is_that_of_many_chained_in_one_call_divided_by_their_number(
    framework, monkeypatch
):
    group, looks = Counting(), []

    def clock():
        looks.append(group.sums)
        return group.now

    monkeypatch.setattr(exchange_trial.time, "perf_counter", clock)
    assert exchange_trial.time_calls(TensorFlowTrial(), group, 1024, 3, 20) == 1.0
    assert group.sums == 4 * 20, "a call to connect, and three that are timed"
    assert looks == [0, 20, 20, 40, 40, 60, 60, 80], (
        "nobody waits for a sum but the last one of a call"
    )


def test_the_known_sum_is_taken_by_a_compiled_function_on_the_device(framework):
    placement = Placement(1, 2, 1, 2, 0, ("n1", "n1"), "test")

    class Other(TensorGroup):
        def tensor_sum(self, tensor):
            compiled.append(not framework.executing_eagerly())
            return tensor + framework.constant([self.count, 0.0])

    for count in (1.0, 2.0):
        compiled, group = [], Other()
        group.count = count
        if count == 1.0:
            assert (
                exchange_trial.prove(TensorFlowTrial(), group, placement, "cpu") is None
            )
        else:
            with pytest.raises(RunError, match="rank 0 counted 2 times"):
                exchange_trial.prove(TensorFlowTrial(), group, placement, "cpu")
        assert compiled == [True]
