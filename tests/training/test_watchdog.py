import pytest

from scalestudy.measure.heartbeat import ProgressMark
from scalestudy.study.records import Sign
from scalestudy.training.watchdog import due_after, granted


@pytest.mark.parametrize(
    ("phase", "slowest", "progress_timeout", "due"),
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
    phase, slowest, progress_timeout, due
):
    assert due_after(ProgressMark(9, phase, 1, 5, 0.0, slowest), progress_timeout) == due


def test_a_rank_that_waits_for_another_waits_as_long_as_that_one_may_take():
    def sign(rank, marks, due):
        return Sign(rank=rank, host="a", pid=1, phase="x", marks=marks, moved=0, due=due, written=0)

    mark, own = ProgressMark(30, "step", 1, 5, 0.0, 0.1), sign(1, 30, 120)
    assert granted(mark, 120, [sign(0, 27, 600), own]) == 600  # rank 0 writes a checkpoint
    assert granted(mark, 120, [sign(0, 30, 120), own]) == 120
    assert granted(mark, 120, [sign(0, 33, 600), own]) == 120
