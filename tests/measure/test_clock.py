"""Times by phase, and the distribution of step times."""

import json
import time
from itertools import pairwise

import pytest

from scalestudy.measure.clock import MOST, PhaseClock, StepTimes, class_of, quantile, seconds_of


def test_phases_and_the_rest_add_up_to_the_wall_time():
    clock = PhaseClock(started=time.time() - 5)
    with clock.phase("build"):
        pass
    clock.add("steps", 0.0)
    phases = clock.phases()
    assert set(phases) == {"start-up", "build", "steps", "other"}
    assert sum(phases.values()) == pytest.approx(clock.wall, abs=0.01)
    assert phases["start-up"] == pytest.approx(5, abs=0.5)


def test_an_inner_phase_is_not_counted_twice():
    clock = PhaseClock()
    with clock.phase("outer"):
        clock.add("inner", 100.0)
    assert clock.seconds["inner"] == 100.0
    assert clock.seconds["outer"] < 0  # the inner 100 s are subtracted from the outer's few microseconds


def test_a_resumed_clock_goes_on_from_what_was_counted_before():
    first = PhaseClock()
    first.add("build", 3.0)
    clock = PhaseClock()
    clock.add("build", 1.0)
    clock.resume({"build": 3.0, "steps": 4.0, "other": 2.0}, wall=9.0)
    phases = clock.phases()
    assert clock.wall == pytest.approx(9.0, abs=0.1)
    assert (phases["build"], phases["steps"]) == (4.0, 4.0)
    assert phases["other"] == pytest.approx(1.0, abs=0.1)  # 9 s minus the 8 s of the phases


def test_a_time_is_known_to_one_percent():
    for seconds in (2e-6, 0.00123, 0.5, 77.0):
        assert seconds_of(class_of(seconds)) == pytest.approx(seconds, rel=0.006)
    assert class_of(0.0) == class_of(1e-9) == 0


def test_calls_and_waits_are_counted_by_how_long_they_took():
    times = StepTimes(3)
    for _ in range(9):
        times.add(8, 0.010, 0.0)
    times.add(2, 0.100, 0.050)
    times.epoch_end(1)
    found = times.record()
    assert (found.rank, found.steps_per_call) == (3, 8)
    assert found.calls == {class_of(0.010): 9}, "calls of fewer steps are shorter for no other reason"
    assert found.waits == {0: 9, class_of(0.050): 1}
    (epoch,) = found.epochs
    assert (epoch.epochs, epoch.calls, epoch.steps) == ((1, 1), 10, 74)
    assert epoch.step_seconds == pytest.approx(0.19)
    assert epoch.input_seconds == pytest.approx(0.05)
    assert epoch.longest == 0.1
    assert quantile(found.calls, 0.5) == pytest.approx(0.010, rel=0.05)


@pytest.mark.parametrize("epochs", [MOST + 1, 5000])
def test_a_record_stays_small_however_long_the_run_and_loses_no_epoch(epochs):
    times = StepTimes(0)
    for epoch in range(1, epochs + 1):
        times.add(1, 0.001 * (epoch % 7 + 1), 0.0)
        times.epoch_end(epoch)
    found = times.record()
    assert len(found.epochs) <= MOST
    assert sum(each.calls for each in found.epochs) == epochs
    bounds = [each.epochs for each in found.epochs]
    assert bounds[0][0] == 1
    assert bounds[-1][1] == epochs
    assert all(one[1] + 1 == other[0] for one, other in pairwise(bounds))
    assert len(json.dumps(found.model_dump(mode="json"))) < 100_000
