"""What a result takes from its point, for runs of tasks and of measured scripts alike."""

from typing import Any

from scalestudy.config.point import Point


def fields_of_point(point: Point) -> dict[str, Any]:
    """Return the fields of a result that its point decides, as keyword arguments of `Result`."""
    return {
        "name": point.name,
        "engine": point.engine,
        "strategy": point.strategy,
        "implementation": point.implementation,
        "workers": point.workers,
        "seed": point.seed,
        "swept": point.swept,
        "oversubscribed": point.oversubscribed,
        "place": point.place,
        "blocks": point.blocks,
    }
