"""The points of a study as a table, one by one or in groups."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scalestudy.app.point_line import STYLES, PointLine, figure, line_of, silence
from scalestudy.util import units

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scalestudy.app.selection import PointGroup
    from scalestudy.launch.base import Overview

MOST_REASONS = 5

OPEN = ("queued", "missing")


def overview_table(overview: "Overview", height: int) -> "RenderableType":
    """The points as a table, with the age of the queue's word where it does not answer."""
    from rich.console import Group
    from rich.text import Text

    table = points_table([line_of(status) for status in overview.points], height - bool(overview.error))
    return Group(table, Text(silence(overview), style="yellow")) if overview.error else table


def points_table(rows: Sequence[PointLine], height: int) -> "RenderableType":
    """All rows, or those around the first unfinished one if they need more than `height` lines."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    explained = [row for row in rows if row.reason][-3:]
    shown = _window(rows, max(height - len(explained), 3))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    # Names alone are folded in a narrow terminal; figures stay whole.
    table.add_column("point", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in ("samples/s", "quality", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    signs = any(row.silent is not None for row in rows)
    if signs:
        table.add_column("last sign", justify="right", no_wrap=True)
    jobs = any(row.job for row in rows)
    if jobs:
        table.add_column("job", overflow="fold")
    for row in shown:
        table.add_row(
            Text(row.name),
            Text(_state(row), style=STYLES.get(row.state, "")),
            _bar(row),
            figure(row.throughput),
            "" if row.quality is None else f"{row.quality:.4f}",
            "" if row.seconds_left is None else units.duration(row.seconds_left),
            *([_age(row)] if signs else []),
            *([Text(row.job)] if jobs else []),
        )
    reasons = [Text(f"{row.name}: {row.reason}", style="red") for row in explained]
    return Group(table, *reasons, Text(counts([row.state for row in rows])))


def counts(states: Sequence[str]) -> str:
    """`8 points: 3 done, 1 running, 4 missing`."""
    counted = [(state, states.count(state)) for state in STYLES]
    noun = "point" if len(states) == 1 else "points"
    return f"{len(states)} {noun}: " + ", ".join(f"{count} {state}" for state, count in counted if count)


def _state(row: PointLine) -> str:
    restarts = f", restart {row.restarts}" if row.restarts and row.state == "running" else ""
    return f"{row.state} {row.phase}".rstrip() + restarts


def _age(row: PointLine) -> str:
    if row.silent is None:
        return ""
    return f"{units.duration(row.silent)} ago" if row.silent else "now"


def _bar(row: PointLine) -> "RenderableType":
    from rich.progress_bar import ProgressBar

    return ProgressBar(total=1.0, completed=row.share, width=12) if row.state in ("done", "running") else ""


def _window(rows: Sequence[PointLine], height: int) -> Sequence[PointLine]:
    if len(rows) <= height:
        return rows
    current = next((index for index, row in enumerate(rows) if row.state == "running"), None)
    if current is None:
        current = next((index for index, row in enumerate(rows) if row.state in OPEN), len(rows))
    start = min(max(current - height // 2, 0), len(rows) - height)
    return rows[start : start + height]


def groups_table(groups: Sequence["PointGroup"], overview: "Overview") -> "RenderableType":
    """A line for each group, then each reason once with the number of points that have it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group as Lines
    from rich.table import Table
    from rich.text import Text

    states = [state for state in STYLES if any(state in group.states for group in groups)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("points", overflow="fold")
    table.add_column("", justify="right", no_wrap=True)
    for state in states:
        table.add_column(state, justify="right", no_wrap=True)
    for group in groups:
        cells = [
            Text(str(count) if count else "", style=STYLES[state])
            for state in states
            for count in [group.states.get(state, 0)]
        ]
        table.add_row(Text(group.title), str(len(group.points)), *cells)
    return Lines(
        table,
        *(Text(line, style="red") for line in reasons(overview)),
        Text(counts([status.state for status in overview.points])),
    )


def reasons(overview: "Overview") -> list[str]:
    """Each reason of a failure once, the commonest first: "12 points, native-w2-s0 first: out of memory"."""
    names_of: dict[str, list[str]] = {}
    for status in overview.failed:
        names_of.setdefault(status.reason, []).append(status.name)
    ordered = sorted(names_of.items(), key=lambda pair: -len(pair[1]))
    lines = [
        f"{names[0]}: {reason}" if len(names) == 1 else f"{len(names)} points, {names[0]} first: {reason}"
        for reason, names in ordered[:MOST_REASONS]
    ]
    left = len(ordered) - MOST_REASONS
    return [*lines, f"{left} more reasons: --state failed shows them."] if left > 0 else lines
