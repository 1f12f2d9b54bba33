"""Select points by name, group them, and describe their states as data for programs."""

import difflib
import fnmatch
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from scalestudy.store.state import State
from scalestudy.util.errors import UserError
from scalestudy.util.text import elide, plural

if TYPE_CHECKING:
    from scalestudy.config.point import Point
    from scalestudy.launch.launcher import Overview, PointStatus
    from scalestudy.launch.waiting import Waiting

STATES: tuple[State, ...] = get_args(State)
STATUS_SCHEMA = 1


@dataclass(frozen=True)
class PointGroup:
    """Points with the same values of the axes ("horovod, 4 workers"), and how many are in each state."""

    title: str
    states: dict[str, int]
    points: tuple["PointStatus", ...]


def match_points(known: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that equal or match a pattern such as 'horovod-*', in the order of the study.

    Raises:
        UserError: A pattern matches no name; the error lists the nearest names.
    """
    known, wanted = list(known), set[str]()
    for pattern in patterns:
        fitting = set()
        for name in known:
            # Not `fnmatch`, which ignores case where the system does.
            if name == pattern or fnmatch.fnmatchcase(name, pattern):
                fitting.add(name)
        if not fitting:
            near = difflib.get_close_matches(pattern, known, 3, cutoff=0.5)
            if not near:
                near = known[:3]
            raise UserError(
                "the name of a point after --point, or a pattern such as 'horovod-*'",
                f"{pattern!r}, which matches none of {len(known)} points",
                f"There are {_some_of(near, known)}",
            )
        wanted |= fitting
    return [name for name in known if name in wanted]


def _some_of(near: Sequence[str], known: Sequence[str]) -> str:
    if not near:
        return "none"
    others = [name for name in known if name not in near]
    return elide([*near, *others], len(near))


def selected(
    overview: "Overview",
    *,
    states: Collection[str] = (),
    patterns: Sequence[str] = (),
) -> "Overview":
    """The points in one of these states (any if empty) whose names match one of these patterns.

    Raises:
        UserError: There is no such state, or a pattern matches no point.
    """
    for state in states:
        if state not in STATES:
            raise UserError(
                f"one of the states {', '.join(STATES)}",
                repr(state),
                "Choose one with --state.",
            )
    names = {status.name for status in overview.points}
    if patterns:
        in_order = [status.name for status in overview.points]
        names = set(match_points(in_order, patterns))
    points = []
    for status in overview.points:
        in_state = not states or status.state in states
        if in_state and status.name in names:
            points.append(status)
    return replace(overview, points=points)


def group_points(overview: "Overview", axes: Sequence[str]) -> list[PointGroup]:
    """Group the points by their values on these axes, in the order of the study."""
    groups: dict[str, list[PointStatus]] = {}
    for status in overview.points:
        values = [_value(status.point, axis) for axis in axes]
        groups.setdefault(", ".join(values), []).append(status)
    found = []
    for title, points in groups.items():
        found.append(PointGroup(title, _count_states(points), tuple(points)))
    return found


def all_but_seeds(overview: "Overview") -> list[str]:
    """The axes on which points differ, other than the seed and the split."""
    from scalestudy.config.point import without_repeats

    swept: dict[str, None] = {}
    for status in overview.points:
        swept |= dict.fromkeys(without_repeats(status.point.swept))
    return ["strategy", "workers", *swept]


def waiting_sentences(
    statuses: "Iterable[PointStatus]", *, stuck_only: bool = False
) -> list[str]:
    """Describe, for each reason, which points wait for it and what to do; those that are stuck come first.

    With `stuck_only`, reasons of jobs that will start are left out.
    """
    # One sentence for many points: a sweep may have hundreds of jobs that wait for the same.
    names: dict[Waiting, list[str]] = {}
    jobs: dict[Waiting, list[str]] = {}
    for status in statuses:
        waiting = status.waiting
        if waiting is None or status.job is None:
            continue
        if waiting.stuck or not stuck_only:
            names.setdefault(waiting, []).append(status.name)
            jobs.setdefault(waiting, []).append(status.job.job)
    sentences = []
    for waiting in sorted(names, key=lambda waiting: not waiting.stuck):
        sentence = waiting.sentence(jobs[waiting])
        sentences.append(f"{_points(names[waiting])} {sentence}")
    return sentences


def _points(names: list[str]) -> str:
    if len(names) == 1:
        return f"{names[0]}:"
    return f"{len(names)} points, {names[0]} first:"


def _value(point: "Point", axis: str) -> str:
    if axis == "strategy":
        return point.strategy
    if axis == "workers":
        return f"{point.workers} {plural('worker', point.workers)}"
    return f"{axis} = {point.swept.get(axis)}"


def _count_states(points: Iterable["PointStatus"]) -> dict[str, int]:
    counts = Counter(status.state for status in points)
    # In the order of the states, whichever points come first.
    return {state: counts[state] for state in STATES if counts[state]}


def status_record(overview: "Overview") -> dict[str, Any]:
    """An overview as JSON values; while `schema` stays the same, keys are added but never renamed.

    Times are Unix times in seconds, throughputs are in samples per second. Unknown values are None.
    """
    return {
        "schema": STATUS_SCHEMA,
        "states": _count_states(overview.points),
        # 0 and "" where no queue was asked.
        "queue": {"asked": overview.asked or None, "error": overview.error or None},
        "points": [_point(status) for status in overview.points],
    }


def _point(status: "PointStatus") -> dict[str, Any]:
    point, run = status.point, None
    if status.run:
        run = str(status.run.path)
    return {
        "name": point.name,
        "state": status.state,
        "reason": status.reason or None,
        "disturbed": status.disturbed or None,
        "strategy": point.strategy,
        "implementation": point.implementation,
        "workers": point.workers,
        "seed": point.seed,
        "swept": point.swept,
        "run": run,
        "job": _job(status),
        "progress": _progress(status),
        "silent_seconds": status.silent,
        "result": _result(status),
    }


def _result(status: "PointStatus") -> dict[str, Any] | None:
    result = status.result
    if result is None:
        return None
    return {
        "throughput": result.throughput,
        "training_seconds": result.training_seconds,
        "metric": result.metric,
        "quality": result.quality,
        "model_missing": result.model_missing,
        "finished": result.finished,
    }


def _job(status: "PointStatus") -> dict[str, Any] | None:
    job, run, view, waiting = status.job, status.run, status.view, status.waiting
    if not job:
        return None
    requeues = nodes = expected = None
    if run:
        requeues = run.requeues() or None
    if view:
        nodes = view.nodes or None
    # Once a job runs, the queue's estimate of its start is no longer one.
    if view and view.waiting:
        expected = view.start or None
    waits = waits_for = next_command = None
    if waiting:
        waits, waits_for = waiting.words, waiting.group
        next_command = waiting.next_command([job.job])
    return {
        # "" until the queue has answered.
        "id": job.job or None,
        "queue": job.queue,
        "attempt": job.attempt,
        "requeues": requeues,
        "submitted": job.submitted,
        "nodes": nodes,
        "waits": waits,
        "waits_for": waits_for,
        "next_command": next_command,
        "expected": expected,
    }


def _progress(status: "PointStatus") -> dict[str, Any] | None:
    if status.progress is None:
        return None
    update = {}
    # If a run makes no progress, its last pace says nothing.
    if status.still:
        update = {"throughput": None, "seconds_left": None}
    return status.progress.model_copy(update=update).model_dump(mode="json")
