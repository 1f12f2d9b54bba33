"""When a timing run ends, and what it records."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from scalestudy.data.samples import Slice
from scalestudy.engines.group import Group
from scalestudy.measure.clock import PhaseClock
from scalestudy.training import epoch_counters
from scalestudy.training.epoch_counters import EpochCounters
from scalestudy.training.step_timer import LEAST_STEPS, MEASURE, WARM_UP, StepTimer

CALL = (Slice(None, None, 0, 16, 16, 0, 2),)
"""Two steps of 16 samples."""


class Pair(Group):
    """The second of two ranks, whose own clock says nothing; rank 0 sends `decisions`."""

    def __init__(self, decisions: list[list[float]]) -> None:
        super().__init__(rank=1, size=2)
        self.decisions = decisions

    def host_sum(self, values):
        assert not values.any()
        return np.array(self.decisions.pop(0))


def calls_until_end(timer, seconds_per_call, most=10_000):
    """Number of calls until the timer ends the run."""
    for number in range(1, most + 1):
        if timer.ends(
            CALL, 32.0, nullcontext, lambda now=number: now * seconds_per_call
        ):
            return number
    return None


def session(spent, epochs=5, every=2):
    return SimpleNamespace(
        elapsed=spent,
        epochs=epochs,
        split=SimpleNamespace(train=range(100), validation=range(10)),
        is_due=lambda epoch: (epoch + 1) % every == 0 or epoch + 1 == epochs,
        measure=lambda samples: {"loss": 1.0},
    )


@pytest.mark.parametrize(("planned", "pace"), [(100_000, 0.1), (100_000, 0.5)])
def test_a_long_training_is_timed_for_some_seconds_after_a_warm_up(planned, pace):
    timer = StepTimer(Group(), planned)
    calls = calls_until_end(timer, pace)
    assert timer.over
    assert WARM_UP + MEASURE <= calls * pace <= 200
    record = finished(timer, calls * pace)
    assert record.warm_up_seconds >= WARM_UP
    assert record.seconds / record.steps == pytest.approx(pace / 2)
    assert record.steps + record.warm_up_steps == 2 * calls


def finished(timer, spent):
    run = session(spent)
    timer.evaluate(run)
    return timer.record(run)


def test_a_short_training_is_timed_for_a_part_of_its_steps():
    timer = StepTimer(Group(), planned=400)
    calls = calls_until_end(timer, 0.001)
    assert 2 * LEAST_STEPS <= 2 * calls <= 0.5 * 400


def test_slow_steps_in_long_calls_are_timed_within_four_calls():
    timer = StepTimer(Group(), planned=224)
    call = (CALL[0]._replace(steps=7),)
    calls = next(
        n
        for n in range(1, 50)
        if timer.ends(call, 1.0, nullcontext, lambda now=n: 6.0 * now)
    )
    record = finished(timer, 6.0 * calls)
    assert (record.warm_up_steps, record.steps) == (14, 14)


def test_a_long_compilation_shortens_nothing():
    timer = StepTimer(Group(), planned=100_000)
    calls = next(
        n
        for n in range(1, 10_000)
        if timer.ends(CALL, 1.0, nullcontext, lambda now=n: 60 + 0.1 * now)
    )
    record = finished(timer, 60 + 0.1 * calls)
    assert record.seconds == pytest.approx(60.0, rel=0.01)
    assert record.seconds / record.steps == pytest.approx(0.05)


def test_a_training_that_ends_first_counts_as_a_whole():
    timer = StepTimer(Group(), planned=4)
    for number in (1, 2):
        timer.ends(CALL, 32.0, nullcontext, lambda now=number: float(now))
    record = finished(timer, 2.0)
    assert not timer.over
    assert record.warm_up_steps + record.steps == 4
    assert record.warm_up_seconds + record.seconds == 2.0


def test_all_ranks_follow_the_first():
    timer = StepTimer(Pair([[0, 0.1], [0, 0.1], [0, 0.1], [1, 0.5]]), 100_000)
    first = StepTimer(Group(), 100_000)
    # Rank 0's pace decides how many calls are measured, however slow this rank's clock is.
    assert calls_until_end(timer, 0.0) == 8 + 60 / 0.5
    assert calls_until_end(first, 0.5) == 8 + 60 / 0.5


def test_first_losses_are_means_over_all_samples_and_a_second_evaluation_is_timed():
    timer = StepTimer(Group(), 100_000)
    calls_until_end(timer, 1.0)
    record = finished(timer, 100.0)
    assert record.losses == [1.0, 1.0]  # of two steps each
    assert len(record.evaluations) == 2
    assert record.training_evaluations == 3
    single = StepTimer(Group(), 100_000)
    calls_until_end(single, 1.0)
    single.evaluate(session(100.0, every=5))
    assert len(single.record(session(100.0, every=5)).evaluations) == 1


def call(steps):
    return (Slice(None, None, 0, 4, 4, steps=steps),)


def test_every_call_is_counted_once_whether_time_stands_still_after_it_or_not():
    clock, counters = PhaseClock(), EpochCounters()
    counters.start()
    for number, steps in enumerate((8, 8, 7)):
        counters.arrived()
        counters.count(call(steps), 1.0)
        if number == 1:  # a checkpoint is written between two calls
            counters.stop(clock)
            counters.start()
        counters.ask()
    counters.stop(clock)
    assert clock.seconds["steps"] + clock.seconds["input"] == pytest.approx(
        counters.seconds
    )
    assert (counters.step, counters.samples, counters.loss) == (23, 92, 3.0)


class Device:
    """A device whose host runs ahead, in simulated seconds."""

    def __init__(self, monkeypatch):
        self.now = self.free = 0.0
        self.ahead = []
        monkeypatch.setattr(epoch_counters.time, "perf_counter", lambda: self.now)

    def given(self, seconds):
        """Give the device a call of so many seconds; return its marks."""
        began = max(self.now, self.free)
        self.free = began + seconds
        self.ahead.append(self.free)
        return Mark(self, began), Mark(self, self.free)


class Mark:
    def __init__(self, device, moment):
        self._device, self.moment = device, moment

    def wait(self):
        self._device.now = max(self._device.now, self.moment)

    def seconds_since(self, earlier):
        return self.moment - earlier.moment


@pytest.mark.parametrize(
    ("reading", "step", "seconds", "waited"),
    [
        (0.0001, 0.010, 0.010, 0.0),
        (0.015, 0.010, 0.010, 0.005),
        (0.004, 0.004, 0.004, 0.0),
    ],
)
def test_a_device_that_runs_behind_times_calls_by_its_own_clock(
    monkeypatch, reading, step, seconds, waited
):
    """Reading a batch takes `reading` seconds, a call `step`; the device waits for the difference."""
    device, clock = Device(monkeypatch), PhaseClock()
    counters, calls, most = EpochCounters(), 100, 0
    counters.start()
    for _ in range(calls):
        device.now += reading
        counters.arrived()
        counters.count(call(1), 1.0, *device.given(step))
        most = max(most, sum(moment > device.now + 1e-9 for moment in device.ahead))
        counters.ask()
    counters.stop(clock)
    assert counters.waited == pytest.approx((calls - 1) * waited + reading, rel=0.01)
    assert counters.seconds == pytest.approx(calls * seconds + counters.waited)
    assert most <= epoch_counters.IN_FLIGHT
