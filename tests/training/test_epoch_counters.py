from scalestudy.data.loading.slices import Slice
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.step_times import StepTimes
from scalestudy.training.session import EpochCounters


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
