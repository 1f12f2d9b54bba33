"""When a study will have ended and what it costs, from the runs that have finished and those under way."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from scalestudy.launch.base import PointStatus

Range = tuple[float, float, float]
"""Least, likely and most seconds."""


@dataclass(frozen=True)
class Remaining:
    """What a study still takes.

    Attributes:
        seconds: Until its last point ends; None where nothing tells, or nothing is left.
        hours: Worker-hours (workers times hours) of finished runs and of those under way so far. What failed
            is not in it.
        expected: Worker-hours in all, once every open point has run; None where nothing tells.
        unknown: Open points of which nothing tells how long they take.
    """

    seconds: Range | None
    hours: float
    expected: float | None
    unknown: int = 0


def remaining(points: Sequence[PointStatus], elapsed: Mapping[str, float], *, at_once: bool) -> Remaining:
    """What is left of a study.

    A point takes as long as those of its strategy and count took. Of a count that has not run yet a scaling
    model says how long where three others have; else the nearest one, between no speed-up and an ideal one.

    Args:
        points: All points as they stand.
        elapsed: Seconds since a run under way began, by its point's name.
        at_once: Whether a queue runs points beside each other: as many as now run at once from here on.
    """
    known = _known(points, elapsed)
    expected_of: dict[tuple[str, int], Range | None] = {}
    left: list[tuple[int, Range]] = []
    unknown = 0
    for each in points:
        if each.state not in ("running", "queued", "missing"):
            continue
        own = each.progress.seconds_left if each.progress and not each.still else None
        if own is not None:
            left.append((each.point.workers, (own, own, own)))
            continue
        alike = _series(each), each.point.workers
        if alike not in expected_of:
            expected_of[alike] = expected_seconds(each, known)
        found = expected_of[alike]
        if found is None:
            unknown += 1
        else:
            left.append((each.point.workers, _less(found, elapsed.get(each.name, 0.0))))
    took = [(each, each.result.wall_seconds if each.result else elapsed.get(each.name)) for each in points]
    hours = sum(each.point.workers * seconds / 3600 for each, seconds in took if seconds is not None)
    if not left:
        return Remaining(None, hours, None if unknown else hours, unknown)
    running = max(1, sum(each.state == "running" for each in points)) if at_once else 1
    ends = list(zip(*(each for _, each in left), strict=True))
    low, likely, high = (max(sum(seconds) / running, *seconds) for seconds in ends)
    expected = hours + sum(workers * each[1] for workers, each in left) / 3600
    return Remaining((low, likely, high), hours, None if unknown else expected, unknown)


def expected_seconds(status: PointStatus, known: "Known") -> Range | None:
    """How long a point takes from its start to its end, by what others took."""
    # Brings in NumPy, which `watch` shows nothing without.
    from scalestudy.analysis.scaling.fit import fit, terms_of

    series = known.get(_series(status), {})
    workers = status.point.workers
    if not series:
        alike = [seconds for counts in known.values() for seconds in counts.get(workers, [])]
        return _range(alike) if alike else None
    if workers in series:
        return _range(series[workers])
    pairs = [(count, seconds) for count, found in series.items() for seconds in found]
    counts, times = [count for count, _ in pairs], [seconds for _, seconds in pairs]
    found = fit(terms_of("strong", "growing"), counts, times)
    nearest = min(series, key=lambda count: max(count, workers) / min(count, workers))
    same = _range(series[nearest])
    ideal = same[1] * nearest / workers
    low, high = min(same[1], ideal), max(same[1], ideal)
    likely = found.seconds(workers) if found else sqrt(low * high)
    return min(low, likely), likely, max(high, likely)


Known = Mapping[str, Mapping[int, Sequence[float]]]
"""Seconds that runs took, by series (strategy and other swept values) and number of workers."""


def _known(points: Sequence[PointStatus], elapsed: Mapping[str, float]) -> Known:
    found: dict[str, dict[int, list[float]]] = {}
    for each in points:
        seconds = each.result.wall_seconds if each.result else None
        if each.state == "running" and each.progress and each.progress.seconds_left is not None:
            seconds = elapsed[each.name] + each.progress.seconds_left if each.name in elapsed else None
        if seconds is not None:
            found.setdefault(_series(each), {}).setdefault(each.point.workers, []).append(seconds)
    return found


def _series(status: PointStatus) -> str:
    return json.dumps([status.point.strategy, status.point.swept], sort_keys=True, default=str)


def _less(found: Range, spent: float) -> Range:
    low, likely, high = (max(0.0, seconds - spent) for seconds in found)
    return low, likely, high


def _range(seconds: Sequence[float]) -> Range:
    return min(seconds), sum(seconds) / len(seconds), max(seconds)


def begun(status: PointStatus, now: float | None = None) -> float | None:
    """Seconds since the workers of a run under way began; None where nothing tells."""
    if status.run is None or status.state != "running":
        return None
    try:
        since = (status.run.path / "ranks" / "0.json").stat().st_mtime
    except OSError:
        return None
    return max(0.0, (time.time() if now is None else now) - since)
