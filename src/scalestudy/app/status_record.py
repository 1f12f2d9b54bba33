"""How a study stands, as data for programs."""

from typing import TYPE_CHECKING, Any

from scalestudy.app.selection import STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalestudy.launch.base import Overview, PointStatus
    from scalestudy.launch.queue.jobs import Orphan

SCHEMA = 1


def status_record(overview: "Overview", orphans: "Sequence[Orphan]" = ()) -> dict[str, Any]:
    """An overview as values that JSON knows; keys are added, never renamed, while `schema` stays.

    `orphans` are jobs of the study's folder that none of its runs knows of. Times are Unix times in seconds,
    throughputs samples per second. What is not known is None.
    """
    states = [each.state for each in overview.points]
    return {
        "schema": SCHEMA,
        "states": {state: states.count(state) for state in STATES if state in states},
        "queue": {"asked": overview.asked or None, "error": overview.error or None},
        "orphans": [
            {"id": each.job.job, "queue": each.queue.name, "name": each.job.name, "state": each.job.state}
            for each in orphans
        ],
        "points": [_point(each) for each in overview.points],
    }


def _point(status: "PointStatus") -> dict[str, Any]:
    point, result, view = status.point, status.result, status.view
    return {
        "name": point.name,
        "state": status.state,
        "reason": status.reason or None,
        "strategy": point.strategy,
        "implementation": point.implementation,
        "workers": point.workers,
        "seed": point.seed,
        "swept": point.swept,
        "run": str(status.run.path) if status.run else None,
        "job": None
        if status.job is None
        else {
            "id": status.job.job or None,
            "queue": status.job.queue,
            "attempt": status.job.attempt,
            "requeues": (status.run.requeues() or None) if status.run else None,
            "submitted": status.job.submitted,
            "nodes": (view.nodes or None) if view else None,
            "waits": status.waits or None,
            "expected": (view.start or None) if view and view.waiting and not view.held else None,
        },
        "progress": _progress(status),
        "silent_seconds": status.silent,
        "result": None
        if result is None
        else {
            "throughput": result.throughput,
            "training_seconds": result.training_seconds,
            "metric": result.metric,
            "quality": result.quality,
            "model_missing": result.model_missing,
            "finished": result.finished,
        },
    }


def _progress(status: "PointStatus") -> dict[str, Any] | None:
    if status.progress is None:
        return None
    # Of a run that stands still the pace tells nothing.
    update = {"throughput": None, "seconds_left": None} if status.still else {}
    return status.progress.model_copy(update=update).model_dump(mode="json")
