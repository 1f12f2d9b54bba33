"""Moments in the work of a GPU under TensorFlow, and sums that are read from it once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from scalestudy.engines.group import Group
from scalestudy.engines.tensorflow import computed_mark
from scalestudy.engines.tensorflow.computed_mark import ComputedMark
from scalestudy.engines.tensorflow.replicas import CompiledReplicas


class Losses:
    """Losses of a call that the device computes at `time` of the clock, once it is told to go on."""

    def __init__(self, clock: "Clock", time: float) -> None:
        self.clock, self.time, self.restore = clock, time, Event()

    def numpy(self) -> float:
        assert self.restore.wait(60)
        self.clock.now = max(self.clock.now, self.time)
        return 0.0


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(computed_mark.time, "perf_counter", lambda: self.now)


@pytest.mark.parametrize(("computed", "idle"), [(8.0, 0.0), (3.0, 2.0)])
def test_a_device_is_idle_from_the_end_of_a_call_to_the_next_one(
    monkeypatch, computed, idle
):
    """The host gives the first call at 0, and the next one at 5, when its input arrives."""
    clock = Clock(monkeypatch)
    losses = Losses(clock, computed)
    with ThreadPoolExecutor(1) as watcher:
        began = ComputedMark(watcher, None)
        ended = ComputedMark(watcher, losses)
        if computed <= 5:
            losses.restore.set()
            ended.wait()
        clock.now = 5.0
        following = ComputedMark(watcher, losses)
        losses.restore.set()
        following.wait()
        assert following.seconds_since(ended) == idle
        assert ended.seconds_since(began) == computed


@pytest.mark.engine
def test_sums_stay_on_the_device_until_they_are_read_as_one_tensor(framework):
    tf = framework
    replicas = CompiledReplicas(Group(), 1, slices=[(0, 1)])
    values = [1.5, [1.0, 2.0], [[3.0], [4.0]], np.zeros((0, 2))]
    compute = tf.function(
        lambda slices: [tf.constant(value, tf.float64) for value in values]
    )
    sums = replicas.sums(compute, [])
    assert all(tf.is_tensor(value) for value in sums)
    total = replicas.arrays(
        [a + b for a, b in zip(sums, replicas.sums(compute, []), strict=True)]
    )
    for found, value in zip(total, values, strict=True):
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, 2 * np.array(value))
