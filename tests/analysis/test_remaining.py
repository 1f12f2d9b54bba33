"""When a study ends and what it costs, estimated from runs of known duration."""

from pathlib import Path

import pytest

from scalestudy.analysis.remaining import remaining
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.config.point import Point
from scalestudy.launch.launcher import PointStatus
from synthetic_result import progress_of, result_of


def points(workers: list[int], seeds: int = 1) -> list[Point]:
    swept = [f"workers = {workers}", f"seed = {list(range(seeds))}"]
    text = "\n".join(['task = "cnn"', "[sweep]", 'strategy = "horovod"', *swept])
    study = parse_study(text, Path("study.toml"))
    return expand(study, gpus=0, cores=64)


def done(point: Point, seconds: float) -> PointStatus:
    result = result_of(point).model_copy(update={"wall_seconds": seconds})
    return PointStatus(point, "done", result=result)


def missing(point: Point) -> PointStatus:
    return PointStatus(point, "missing")


def running(point: Point, left: float | None) -> PointStatus:
    progress = progress_of(seconds_left=left)
    return PointStatus(point, "running", progress=progress)


def test_other_seeds_of_a_point_say_how_long_it_takes_and_within_which_range():
    one, two, three = points([2], seeds=3)
    found = remaining(
        [done(one, 100.0), done(two, 140.0), missing(three)], {}, at_once=False
    )
    assert found.seconds == (100.0, 120.0, 140.0)
    assert found.hours == pytest.approx(2 * 240 / 3600)
    assert found.expected == pytest.approx(2 * 360 / 3600)


@pytest.mark.parametrize(
    ("counts", "took", "seconds"),
    [
        # Between no speed-up and an ideal one from the nearest count.
        ([1, 2, 4, 8], [90.0, 50.0, 30.0], (15.0, 15.0 * 2**0.5, 30.0)),
        ([1, 4], [80.0], (20.0, 40.0, 80.0)),
    ],
)
def test_the_nearest_count_says_how_long_a_larger_one_takes(counts, took, seconds):
    *known, largest = points(counts)
    found = remaining([*map(done, known, took), missing(largest)], {}, at_once=False)
    assert found.seconds == pytest.approx(seconds)


def test_a_run_under_way_ends_when_it_says_and_tells_of_the_others():
    one, two = points([2], seeds=2)
    found = remaining(
        [running(one, 30.0), missing(two)], {one.name: 70.0}, at_once=False
    )
    assert found.seconds == (130.0, 130.0, 130.0)
    assert found.hours == pytest.approx(2 * 70 / 3600)
    assert found.expected == pytest.approx(2 * 200 / 3600)


def test_a_queue_runs_as_many_at_once_as_now_but_the_longest_has_to_end():
    given = points([1], seeds=5)
    states = [running(each, 100.0) for each in given[:2]] + [
        missing(each) for each in given[2:]
    ]
    found = remaining(states, {each.name: 0.0 for each in given[:2]}, at_once=True)
    assert found.seconds == (250.0, 250.0, 250.0)
    lone = remaining(
        [running(given[0], 100.0), running(given[1], 1.0)], {}, at_once=True
    )
    assert lone.seconds == (100.0, 100.0, 100.0)


def test_what_nothing_tells_of_is_counted_and_not_guessed():
    one, two = points([1, 2])
    found = remaining([running(one, None), missing(two)], {}, at_once=False)
    assert (found.seconds, found.expected, found.unknown) == (None, None, 2)
    assert remaining([done(one, 36.0)], {}, at_once=False).seconds is None


def test_time_already_spent_is_not_left():
    one, two = points([2], seeds=2)
    found = remaining(
        [done(one, 100.0), running(two, None)], {two.name: 60.0}, at_once=False
    )
    assert found.seconds == (40.0, 40.0, 40.0)
