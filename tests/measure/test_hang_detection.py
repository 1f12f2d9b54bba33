"""Hang detection: what counts as progress, how long a phase may take, and which rank hung first."""

import itertools

import pytest

from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.heartbeat import Heartbeat, ProgressMark
from scalestudy.measure.hung_rank import first_hung, first_stopped
from scalestudy.measure.progress_timer import ProgressTimer
from scalestudy.measure.silence import describe_hang, describe_silence, silent_seconds
from scalestudy.measure.watchdog import due_after, extend_limit
from scalestudy.store.records import Hang, Sign


def sign(rank: int, marks: int, written: float = 0.0, **more) -> Sign:
    given = {
        "phase": "step",
        "epoch": 2,
        "step": marks // 3,
        "moved": 0.0,
        "due": 120.0,
        **more,
    }
    return Sign(
        rank=rank, host=f"node{rank}", pid=7, marks=marks, written=written, **given
    )


def later(signs, *living: int) -> list[Sign]:
    """Return the heartbeats after these ranks have written new ones."""
    return [
        each.model_copy(update={"written": 5.0}) if each.rank in living else each
        for each in signs
    ]


@pytest.mark.parametrize(
    ("marks", "living", "size", "rank", "lives"),
    [
        (
            (32, 30, 32),
            (0, 1, 2),
            3,
            1,
            True,
        ),  # the rank furthest behind, whatever the clocks
        (
            (30, 30, 30),
            (0, 1),
            3,
            2,
            False,
        ),  # at the same step, the rank that stopped writing
        ((33, 30), (1,), 2, 1, True),  # a late heartbeat does not make a rank the first
        ((3,), (0,), 2, 1, False),  # no heartbeat
        ((30, 30), (0, 1), 2, None, True),  # no rank is behind another
        ((30,), (), 1, 0, False),
        ((30,), (0,), 1, 0, True),
    ],
)
def test_the_first_rank_that_hangs(marks, living, size, rank, lives):
    signs = [sign(rank, number) for rank, number in enumerate(marks)]
    hang = first_hung(signs, later(signs, *living), size, 120)
    assert (hang.rank, hang.lives, hang.seconds) == (rank, lives, 120)


def test_of_the_ranks_that_write_no_more_the_one_that_has_come_least_far_was_stopped_first():
    signs = [sign(0, 20), sign(1, 32), sign(2, 30)]
    assert first_stopped(signs, later(signs, 0), 9).rank == 2
    assert first_stopped(signs, later(signs, 0, 1, 2), 9) is None


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (
            {"rank": 3, "host": "node2", "phase": "compile"},
            ("rank 3 on node2", "at compile", "600 s"),
        ),
        (
            {"rank": None, "phase": "step", "epoch": 2, "step": 7},
            ("all ranks", "epoch 2 after step 7"),
        ),
        ({"rank": 1}, ("rank 1", "no progress", "600 s")),
    ],
)
def test_a_hang_is_told_with_rank_host_place_and_seconds(place, named):
    words = describe_hang(Hang(seconds=600.4, lives=False, **place))
    assert all(part in words for part in named)


def test_a_rank_without_heartbeats_is_named_before_those_that_wait_for_it():
    signs = [
        sign(0, 3, written=195.0, moved=100.0),
        sign(1, 3, written=101.0, moved=101.0),
    ]
    assert "no sign of life of rank 1 on node1 for 1:35 min" in describe_silence(
        signs, 200.0
    )
    alive = [each.model_copy(update={"written": 198.0}) for each in signs]
    assert "no progress of rank 0 on node0 for 1:35 min" in describe_silence(
        alive, 200.0
    )


@pytest.mark.parametrize(
    ("moved", "due", "expected"),
    [
        ([100.0, 99.0], 120, (0, False)),
        ([100.0, 69.0], 120, (30, True)),
        ([100.0, 0.0], 600, (100, False)),
        ([110.0], 120, (0, False)),  # a clock ahead of ours
        ([], 120, (0, False)),
    ],
)
def test_a_run_is_as_silent_as_the_rank_that_is_furthest_behind(moved, due, expected):
    signs = [sign(rank, 3, moved=time, due=due) for rank, time in enumerate(moved)]
    assert silent_seconds(signs, 100.0) == expected


@pytest.mark.parametrize("ahead", [-25.0, 0.0, 25.0])
def test_how_long_a_living_rank_has_not_moved_is_told_by_its_own_clock(ahead):
    here = sign(0, 3, moved=95.0 + ahead, written=99.0 + ahead, due=120)
    assert silent_seconds([here], 100.0) == (0, False)
    stands = here.model_copy(update={"moved": 30.0 + ahead})
    assert silent_seconds([here, stands], 100.0) == (65, True)


@pytest.mark.parametrize(
    ("phase", "slowest", "progress_timeout", "due"),
    [
        ("compile", 0.0, 600, 600),
        ("step", 0.0, 600, 600),  # the first step
        ("input", 0.1, 600, 120),
        ("step", 10.0, 600, 200),
        ("step", 100.0, 600, 600),
        ("step", 0.1, 30, 30),
        ("callbacks", 0.1, 600, 600),
    ],
)
def test_a_step_may_take_twenty_times_the_slowest_and_other_phases_what_the_study_says(
    phase, slowest, progress_timeout, due
):
    assert (
        due_after(ProgressMark(9, phase, 1, 5, 0.0, slowest), progress_timeout) == due
    )


def test_a_rank_that_waits_for_another_waits_as_long_as_that_one_may_take():
    mark, own = ProgressMark(30, "step", 1, 5, 0.0, 0.1), sign(1, 30, due=120)
    assert (
        extend_limit(mark, 120, [sign(0, 27, due=600), own]) == 600
    )  # rank 0 writes a checkpoint
    assert extend_limit(mark, 120, [sign(0, 30, due=120), own]) == 120
    assert extend_limit(mark, 120, [sign(0, 33, due=600), own]) == 120


def test_phases_are_told_when_they_are_entered_and_left():
    clock, seen = PhaseClock(), []
    with clock.phase("build"):
        with clock.phase("compile"):
            seen.append(clock.heartbeat.last.phase)
        seen.append(clock.heartbeat.last.phase)
    assert [*seen, clock.heartbeat.last.phase] == ["compile", "build", "start-up"]
    assert clock.heartbeat.last.number == 4


def test_a_rank_that_stands_still_in_its_part_of_a_step_is_behind_those_that_wait_for_it():
    waits, still, evaluates = Heartbeat(), Heartbeat(), Heartbeat()
    for heartbeat in (waits, still):
        heartbeat.step(1, 0, "step")
    waits.exchange()
    waits.exchange()  # a second step of the same call
    assert (waits.last.number, waits.last.phase) == (still.last.number + 2, "backward")
    evaluates.enter("compile")
    evaluates.exchange()
    assert (evaluates.last.number, evaluates.last.phase) == (1, "compile")


def test_the_slowest_step_is_known_and_other_phases_are_none(monkeypatch):
    times = iter([0.0, 1.0, 4.0, 6.0, 96.0])
    monkeypatch.setattr(
        "scalestudy.measure.heartbeat.time.monotonic", lambda: next(times)
    )
    heartbeat = Heartbeat()
    heartbeat.enter("input")  # after 1 s of start-up
    heartbeat.enter("step")  # after 3 s of waiting
    heartbeat.enter("callbacks")  # after 2 s
    assert heartbeat.last.slowest == 3.0
    heartbeat.enter("input")  # after 90 s
    assert heartbeat.last.slowest == 3.0


@pytest.mark.parametrize(
    ("times", "seen", "seconds"),
    [
        ([0, 1, 2, 3, 4], "aaaba", [0, 1, 2, 0, 0]),
        ([0, 1, 9000, 9001], "aaaa", [0, 1, 6, 7]),  # suspended in between
        ([0, 1, 2, 3], itertools.repeat([], 4), [0, 1, 2, 3]),
    ],
)
def test_seconds_add_up_until_something_changes(times, seen, seconds):
    clock = iter([times[0], *times])
    timer = ProgressTimer(5.0, lambda: next(clock))
    assert [timer.look(value) for value in seen] == seconds


@pytest.mark.parametrize(
    ("phase", "living", "rank", "lives"),
    [
        (
            "callbacks",
            (0, 2),
            1,
            False,
        ),  # it serves, though rank 0 may be further behind
        ("callbacks", (1, 2), 0, False),
        ("step", (0, 1, 2), 0, True),
    ],
)
def test_of_rank_0_and_those_that_serve_it_the_one_that_hangs(
    phase, living, rank, lives
):
    serving = [sign(rank, 5 + rank, phase="serving") for rank in (1, 2)]
    for marks in (1, 40):
        signs = [sign(0, marks, phase=phase), *serving]
        hang = first_hung(signs, later(signs, *living), 3, 120)
        assert (hang.rank, hang.lives) == (rank, lives)
