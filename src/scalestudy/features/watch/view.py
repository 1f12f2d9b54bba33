"""What of the watched studies is on the screen, and what keys do to it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalestudy.features.watch.watcher import Watched
    from scalestudy.launch.base import PointStatus

URGENCY = ("running", "failed", "corrupt", "cancelled", "queued", "missing", "done")
"""What is shown first: what runs, then what went wrong."""
SORTS = ("state", "name", "rate", "quality")
PAGE = 10


@dataclass(frozen=True)
class View:
    """What a person has chosen to see.

    Attributes:
        study: Its place among the studies.
        point: Name of the chosen point; None for the first.
        sort: What points are sorted by, one of `SORTS`.
        logs: Whether the chosen run's logs are shown instead of its curve.
        over: Whether the person wants to leave.
    """

    study: int = 0
    point: str | None = None
    sort: str = "state"
    logs: bool = False
    over: bool = False


def ordered(points: "Sequence[PointStatus]", sort: str) -> "list[PointStatus]":
    """The points as they are shown: those alike stay in the order of the study."""
    if sort == "name":
        return sorted(points, key=lambda each: each.name)
    if sort in ("rate", "quality"):
        known = [(value, each) for each in points if (value := _value(each, sort)) is not None]
        rest = [each for each in points if _value(each, sort) is None]
        found = [each for _, each in sorted(known, key=lambda pair: -pair[0])]
        return found + ordered(rest, "state")
    return sorted(points, key=lambda each: URGENCY.index(each.state))


def chosen(view: View, studies: "Sequence[Watched]") -> "PointStatus | None":
    """The point that is chosen: by name, since its place changes; else the first."""
    if not studies:
        return None
    points = ordered(studies[min(view.study, len(studies) - 1)].points, view.sort)
    return next((each for each in points if each.name == view.point), points[0] if points else None)


def after(view: View, key: str, studies: "Sequence[Watched]") -> View:
    """The view after a key."""
    if key in ("q", "Q"):
        return replace(view, over=True)
    if key in ("l", "L"):
        return replace(view, logs=not view.logs)
    if key in ("s", "S"):
        return replace(view, sort=SORTS[(SORTS.index(view.sort) + 1) % len(SORTS)])
    if key in ("tab", "right", "back tab", "left") and studies:
        step = 1 if key in ("tab", "right") else -1
        return replace(view, study=(view.study + step) % len(studies), point=None)
    steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -PAGE, "page down": PAGE}
    if key in steps or key in ("home", "end"):
        return _moved(view, key, steps.get(key, 0), studies)
    return view


def _moved(view: View, key: str, step: int, studies: "Sequence[Watched]") -> View:
    if not studies:
        return view
    points = ordered(studies[min(view.study, len(studies) - 1)].points, view.sort)
    now = chosen(view, studies)
    if now is None:
        return view
    place = {"home": 0, "end": len(points) - 1}.get(key, points.index(now) + step)
    return replace(view, point=points[min(max(place, 0), len(points) - 1)].name)


def _value(status: "PointStatus", sort: str) -> float | None:
    record = status.result or (None if status.still else status.progress)
    if record is None:
        return None
    return record.throughput if sort == "rate" else record.quality
