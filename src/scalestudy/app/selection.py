"""The points of an overview that somebody asks for, and groups of them."""

import fnmatch
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from scalestudy.study.state import State
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.launch.base import Overview, PointStatus
    from scalestudy.study.point import Point

STATES: tuple[State, ...] = get_args(State)
AXES = ("strategy", "workers", "seed")
"""What every study sweeps; beside it, whatever else a study does."""


@dataclass(frozen=True)
class Group:
    """Points that are alike in the axes that they are grouped by.

    Attributes:
        title: Their common values: "horovod, 4 workers".
        states: How many of them are in each state.
        points: The points.
    """

    title: str
    states: dict[str, int]
    points: tuple["PointStatus", ...]


def selected(
    overview: "Overview", *, states: Collection[str] = (), patterns: Sequence[str] = ()
) -> "Overview":
    """The points in one of these states (any when empty) and with a name like one of these patterns.

    Raises:
        UserError: If there is no such state, or if a pattern fits no point.
    """
    for state in states:
        if state not in STATES:
            raise UserError(f"a state out of {', '.join(STATES)}", repr(state), "Choose one with --state.")
    for pattern in patterns:
        if not any(_fits(each.name, pattern) for each in overview.points):
            first = overview.points[0].name if overview.points else "none"
            raise UserError(
                "a name of a point, or a pattern such as 'horovod-*'",
                f"{pattern!r}, which fits none of {len(overview.points)} points (the first is {first})",
                "Leave it out to see them all.",
            )
    points = [
        each
        for each in overview.points
        if (not states or each.state in states)
        and (not patterns or any(_fits(each.name, pattern) for pattern in patterns))
    ]
    return replace(overview, points=points)


def grouped(overview: "Overview", axes: Sequence[str]) -> list[Group]:
    """The points by their values of these axes, in the order of the study.

    Raises:
        UserError: If the study has no such axis.
    """
    known = [*AXES, *dict.fromkeys(name for each in overview.points for name in each.point.swept)]
    for axis in axes:
        if axis not in known:
            raise UserError(f"an axis out of {', '.join(known)}", repr(axis), "Choose one with --by.")
    found: dict[str, list[PointStatus]] = {}
    for each in overview.points:
        found.setdefault(_title(each.point, axes), []).append(each)
    return [Group(title, _counted(points), tuple(points)) for title, points in found.items()]


def all_but_seeds(overview: "Overview") -> list[str]:
    """The axes in which points differ, but for the seed."""
    swept = dict.fromkeys(name for each in overview.points for name in each.point.swept)
    return ["strategy", "workers", *swept]


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def _title(point: "Point", axes: Sequence[str]) -> str:
    return ", ".join(_value(point, axis) for axis in axes)


def _value(point: "Point", axis: str) -> str:
    if axis == "strategy":
        return point.strategy
    if axis == "workers":
        return f"{point.workers} worker{'s' * (point.workers != 1)}"
    value = point.seed if axis == "seed" else point.swept.get(axis)
    return f"{axis} {value}" if axis == "seed" else f"{axis} = {value}"


def _counted(points: Iterable["PointStatus"]) -> dict[str, int]:
    counts = Counter(each.state for each in points)
    return {state: counts[state] for state in STATES if counts[state]}
