import pytest

from scalestudy.measure.heartbeat import Mark
from scalestudy.training.watchdog import due_after


@pytest.mark.parametrize(
    ("phase", "slowest", "silent_after", "due"),
    [
        ("compile", 0.0, 600, 600),
        ("step", 0.0, 600, 600),  # the first
        ("step", 0.1, 600, 120),
        ("input", 0.1, 600, 120),
        ("step", 10.0, 600, 200),
        ("step", 100.0, 600, 600),
        ("step", 0.1, 30, 30),
        ("callbacks", 0.1, 600, 600),
        ("evaluation", 0.1, 600, 600),
    ],
)
def test_a_step_may_take_twenty_times_the_slowest_and_other_phases_what_the_study_says(
    phase, slowest, silent_after, due
):
    assert due_after(Mark(9, phase, 1, 5, 0.0, slowest), silent_after) == due
