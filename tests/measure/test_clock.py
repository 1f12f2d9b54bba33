"""Times by phase."""

import time

import pytest

from scalestudy.measure.clock import PhaseClock


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
    assert (
        clock.seconds["outer"] < 0
    )  # the inner 100 s are subtracted from the outer's few microseconds


def test_a_resumed_clock_goes_on_from_what_was_counted_before():
    first = PhaseClock()
    first.add("build", 3.0)
    clock = PhaseClock()
    clock.add("build", 1.0)
    clock.resume({"build": 3.0, "steps": 4.0, "other": 2.0}, wall=9.0)
    phases = clock.phases()
    assert clock.wall == pytest.approx(9.0, abs=0.1)
    assert (phases["build"], phases["steps"]) == (4.0, 4.0)
    assert phases["other"] == pytest.approx(
        1.0, abs=0.1
    )  # 9 s minus the 8 s of the phases
