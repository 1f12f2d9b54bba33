"""Groups of a study's points as a table: how many are in each state, and the reasons of those that failed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scalestudy.app.point_line import STYLES
from scalestudy.cli.points_table import counts

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scalestudy.app.selection import Group
    from scalestudy.launch.base import Overview

MOST_REASONS = 5


def groups_table(groups: Sequence["Group"], overview: "Overview") -> "RenderableType":
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
        Text(counts([each.state for each in overview.points])),
    )


def reasons(overview: "Overview") -> list[str]:
    """Each reason of a failure once, the commonest first: "12 points, native-w2-s0 first: out of memory"."""
    found: dict[str, list[str]] = {}
    for each in overview.failed:
        found.setdefault(each.reason, []).append(each.name)
    ordered = sorted(found.items(), key=lambda pair: -len(pair[1]))
    lines = [
        f"{names[0]}: {reason}" if len(names) == 1 else f"{len(names)} points, {names[0]} first: {reason}"
        for reason, names in ordered[:MOST_REASONS]
    ]
    left = len(ordered) - MOST_REASONS
    return [*lines, f"{left} more reasons: --state failed shows them."] if left > 0 else lines
