import pytest

from scalestudy.data.samples import Slice
from scalestudy.measure.clock import PhaseClock, StepTimes
from scalestudy.training import timers
from scalestudy.training.timers import EpochCounters


def call(steps):
    return (Slice(None, None, 0, 4, 4, steps=steps),)


def test_every_call_is_accounted_for_once_whether_time_stands_still_after_it_or_not():
    times, clock = StepTimes(0), PhaseClock()
    tally = EpochCounters(times=times)
    tally.start()
    for number, steps in enumerate((8, 8, 7)):
        tally.arrived()
        tally.count(call(steps), 1.0)
        if number == 1:  # a checkpoint is written between two calls
            tally.stop(clock)
            tally.start()
        tally.ask()
    tally.stop(clock)
    times.epoch_end(1)
    (epoch,) = times.record().epochs
    assert (epoch.calls, epoch.steps) == (3, 23)
    assert epoch.step_seconds + epoch.input_seconds <= tally.seconds
    assert (tally.step, tally.samples, tally.loss) == (23, 92, 3.0)


def test_a_tally_needs_no_account():
    tally = EpochCounters()
    tally.start()
    tally.arrived()
    tally.count(call(1), 2.0)
    tally.ask()
    tally.stop(PhaseClock())
    assert tally.loss == 2.0


class Device:
    """A device whose host runs ahead, in simulated seconds."""

    def __init__(self, monkeypatch):
        self.now = self.free = 0.0
        self.ahead = []
        monkeypatch.setattr(timers.time, "perf_counter", lambda: self.now)

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
    [(0.0001, 0.010, 0.010, 0.0), (0.015, 0.010, 0.010, 0.005), (0.004, 0.004, 0.004, 0.0)],
)
def test_a_device_that_runs_behind_times_calls_by_its_own_clock(monkeypatch, reading, step, seconds, waited):
    """Reading a batch takes `reading` seconds, a call `step`; the device waits for the difference."""
    device, times, clock = Device(monkeypatch), StepTimes(0), PhaseClock()
    tally, calls, most = EpochCounters(times=times), 100, 0
    tally.start()
    for _ in range(calls):
        device.now += reading
        tally.arrived()
        tally.count(call(1), 1.0, *device.given(step))
        most = max(most, sum(moment > device.now + 1e-9 for moment in device.ahead))
        tally.ask()
    tally.stop(clock)
    times.epoch_end(1)
    (epoch,) = times.record().epochs
    assert epoch.calls == calls
    assert epoch.step_seconds / calls == pytest.approx(seconds)
    assert epoch.input_seconds == pytest.approx((calls - 1) * waited + reading, rel=0.01)
    assert tally.waited == pytest.approx(epoch.input_seconds)
    assert tally.seconds == pytest.approx(epoch.step_seconds + epoch.input_seconds)
    assert most <= timers.IN_FLIGHT
