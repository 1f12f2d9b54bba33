"""How a study stands, as data for programs."""

from typing import TYPE_CHECKING, Any

from scalestudy.conduct.selection import STATES

if TYPE_CHECKING:
    from scalestudy.launch.base import Overview, PointStatus

SCHEMA = 1


def status_record(overview: "Overview") -> dict[str, Any]:
    """An overview as values that JSON knows; keys are added, never renamed, while `schema` stays.

    Times are Unix times in seconds, throughputs samples per second. What is not known is None.
    """
    states = [each.state for each in overview.points]
    return {
        "schema": SCHEMA,
        "states": {state: states.count(state) for state in STATES if state in states},
        "queue": {"asked": overview.asked or None, "error": overview.error or None},
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
            "id": status.job.job,
            "queue": status.job.queue,
            "attempt": status.job.attempt,
            "submitted": status.job.submitted,
            "nodes": (view.nodes or None) if view else None,
            "waits": status.waits or None,
            "expected": (view.start or None) if view and view.waiting and not view.held else None,
        },
        "progress": status.progress.model_dump(mode="json") if status.progress else None,
        "result": None
        if result is None
        else {
            "throughput": result.throughput,
            "training_seconds": result.training_seconds,
            "metric": result.metric,
            "quality": result.quality,
            "finished": result.finished,
        },
    }
