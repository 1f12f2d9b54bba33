"""When a study will end and what it will cost, from its finished and running runs."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from scalestudy.config.point import without_repeats
from scalestudy.launch.launcher import PointStatus

Range = tuple[float, float, float]
"""Lowest, likely and highest number of seconds."""
Durations = dict[str, dict[int, list[float]]]
"""Seconds that runs took, by series (strategy and other swept values) and number of workers."""


@dataclass(frozen=True)
class Remaining:
    """Time and cost that a study still needs.

    Attributes:
        seconds: Until its last point ends; None if unknown or nothing is left.
        hours: Worker-hours (workers times hours) of finished and running runs so far, without failed runs.
        expected: Total worker-hours once every open point has run; None if unknown.
        unknown: Number of open points with unknown duration.
    """

    seconds: Range | None
    hours: float
    expected: float | None
    unknown: int = 0


def remaining(
    points: Sequence[PointStatus],
    elapsed: Mapping[str, float],
    *,
    at_once: bool,
) -> Remaining:
    """Estimate what is left of a study.

    A point takes as long as finished points with the same strategy and number of workers. Otherwise it lies
    between no speed-up and ideal speed-up from the nearest number.

    Args:
        points: All points with their state.
        elapsed: Seconds since each running run began, by its point's name.
        at_once: Whether a queue runs points in parallel, as many as are running now.
    """
    durations, spent = _durations(points, elapsed), 0.0
    expected: dict[tuple[str, int], Range | None] = {}
    left: list[tuple[int, Range]] = []
    unknown = 0
    for status in points:
        workers = status.point.workers
        passed = elapsed.get(status.name, 0.0)
        taken: float | None = passed
        if status.result:
            taken = status.result.wall_seconds
        spent += workers * (taken or 0.0) / 3600
        if status.state not in ("running", "queued", "missing"):
            continue
        # A run without progress has no pace of its own.
        seconds_left = None
        if not status.still:
            seconds_left = _seconds_left(status)
        if seconds_left is not None:
            left.append((workers, (seconds_left,) * 3))
            continue
        series = _series(status), workers
        if series not in expected:
            expected[series] = _expected_seconds(*series, durations)
        range_ = expected[series]
        if range_ is None:
            unknown += 1
            continue
        low, likely, high = range_
        rest = (
            max(0.0, low - passed),
            max(0.0, likely - passed),
            max(0.0, high - passed),
        )
        left.append((workers, rest))
    if not left:
        return Remaining(None, spent, None if unknown else spent, unknown)
    running = 1
    if at_once:
        # Before the queue starts any, it may be that they run one at a time: the longest that it takes.
        states = [status.state for status in points]
        running = max(1, states.count("running"))
    ranges, worker_seconds = [], []
    for workers, range_ in left:
        ranges.append(range_)
        _, likely, _ = range_
        worker_seconds.append(workers * likely)
    total = None
    if not unknown:
        total = spent + sum(worker_seconds) / 3600
    return Remaining(_until_all_end(ranges, running), spent, total, unknown)


def _until_all_end(ranges: Sequence[Range], running: int) -> Range:
    """Seconds until all runs have ended, so many at once; the longest of them cannot be divided."""
    lows, likelies, highs = zip(*ranges, strict=True)
    return (
        max(sum(lows) / running, *lows),
        max(sum(likelies) / running, *likelies),
        max(sum(highs) / running, *highs),
    )


def _expected_seconds(series: str, workers: int, durations: Durations) -> Range | None:
    """How long a run will take, from runs of its series, else from any runs on as many workers."""
    counts = durations.get(series, {})
    if not counts:
        others: list[float] = []
        for seconds_of in durations.values():
            others += seconds_of.get(workers, [])
        return _range(others) if others else None
    if workers in counts:
        return _range(counts[workers])

    def ratio(count: int) -> float:
        return max(count, workers) / min(count, workers)

    nearest = min(counts, key=ratio)
    same = _range(counts[nearest])
    # Between no speed-up and the ideal one, whichever is the longer.
    ideal = same[1] * nearest / workers
    low = min(same[1], ideal)
    high = max(same[1], ideal)
    # In the middle by ratio: speed-ups are factors.
    return low, sqrt(low * high), high


def _durations(
    points: Sequence[PointStatus], elapsed: Mapping[str, float]
) -> Durations:
    durations: Durations = {}
    for status in points:
        seconds = None
        if status.result:
            seconds = status.result.wall_seconds
        left = _seconds_left(status)
        if status.state == "running" and left is not None:
            # A running run foretells its own length, and so that of its series.
            passed = elapsed.get(status.name)
            seconds = None
            if passed is not None:
                seconds = passed + left
        if seconds is not None:
            counts = durations.setdefault(_series(status), {})
            counts.setdefault(status.point.workers, []).append(seconds)
    return durations


def _seconds_left(status: PointStatus) -> float | None:
    return status.progress.seconds_left if status.progress else None


def _series(status: PointStatus) -> str:
    swept = without_repeats(status.point.swept)
    return json.dumps(
        [status.point.strategy, status.point.timing, swept],
        sort_keys=True,
        default=str,
    )


def _range(seconds: Sequence[float]) -> Range:
    return min(seconds), sum(seconds) / len(seconds), max(seconds)


def begun(status: PointStatus) -> float | None:
    """Seconds since the workers of a running run began; None if unknown."""
    if status.run is None or status.state != "running":
        return None
    try:
        # A file's time and this host's clock: an estimate for display, in which seconds do not matter.
        since = (status.run.path / "ranks" / "0.json").stat().st_mtime
    except OSError:
        return None
    return max(0.0, time.time() - since)
