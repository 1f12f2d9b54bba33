"""The points of a study as lines, as a table, or, if there are many, in groups."""

import time
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scalestudy.app.selection import PointGroup, waiting_sentences
from scalestudy.launch.launcher import Overview
from scalestudy.report.point_lines import PointLine, counts, figure, line_of
from scalestudy.util import units

STYLES = {
    "done": "green",
    "failed": "red",
    "cancelled": "magenta",
    "running": "bold cyan",
    "queued": "yellow",
    "missing": "dim",
    "corrupt": "bold red",
}
"""Style of each state in a terminal."""


def silence(overview: Overview) -> str:
    """A sentence on a queue that does not answer: the error, and the age of its last answer."""
    age = units.duration(time.time() - overview.asked)
    last = f"its last answer is {age} old" if overview.asked else "it has never answered"
    return f"{overview.silent} does not answer ({overview.error}); {last}."


MOST_REASONS = 5
FEWEST_REASONS = 3
"""Number of reasons that are shown even on a small terminal."""
OPEN = ("queued", "missing")


def overview_table(overview: Overview, height: int) -> RenderableType:
    """The points as a table, with the age of the queue's last answer if it does not answer."""
    below = waiting_sentences(overview.points)
    if overview.error:
        below.append(silence(overview))
    table = points_table([line_of(status) for status in overview.points], height - len(below))
    return Group(table, *(Text(sentence, style="yellow") for sentence in below)) if below else table


def points_table(rows: Sequence[PointLine], height: int) -> RenderableType:
    """All rows, or those around the current one if they need more than `height` lines."""
    explained = [row for row in rows if row.reason]
    left = len(explained) - max(height - len(rows), FEWEST_REASONS)
    explained = explained[max(left, 0) :]
    shown = _window(rows, max(height - len(explained), 3))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    # In a narrow terminal only names are wrapped; numbers stay whole.
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
            ProgressBar(total=1.0, completed=row.share, width=12) if row.state in ("done", "running") else "",
            figure(row.throughput),
            "" if row.quality is None else f"{row.quality:.4f}",
            "" if row.seconds_left is None else units.duration(row.seconds_left),
            *([_age(row)] if signs else []),
            *([Text(row.job)] if jobs else []),
        )
    reasons = [Text(f"{row.name}: {row.reason}", style="red") for row in explained]
    if left > 0:
        reasons.append(Text(f"{left} more reasons: see `scalestudy status --state failed`."))
    return Group(table, *reasons, Text(counts([row.state for row in rows])))


def _state(row: PointLine) -> str:
    restarts = f", restart {row.restarts}" if row.restarts and row.state == "running" else ""
    return f"{row.state} {row.phase}".rstrip() + restarts


def _age(row: PointLine) -> str:
    if row.silent is None:
        return ""
    return f"{units.duration(row.silent)} ago" if row.silent else "now"


def _window(rows: Sequence[PointLine], height: int) -> Sequence[PointLine]:
    if len(rows) <= height:
        return rows
    current = next((index for index, row in enumerate(rows) if row.state == "running"), None)
    if current is None:
        current = next((index for index, row in enumerate(rows) if row.state in OPEN), len(rows))
    start = min(max(current - height // 2, 0), len(rows) - height)
    return rows[start : start + height]


def groups_table(groups: Sequence[PointGroup], overview: Overview) -> RenderableType:
    """A line for each group, then each reason with the number of points that have it."""
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
    return Group(
        table,
        *(Text(line, style="red") for line in reasons(overview)),
        *(Text(line, style="yellow") for line in waiting_sentences(overview.points)),
        Text(counts([status.state for status in overview.points])),
    )


def reasons(overview: Overview) -> list[str]:
    """The most common reasons of failures: "12 points, native-w2-s0 first: out of memory"."""
    names_of: dict[str, list[str]] = {}
    for status in overview.failed:
        names_of.setdefault(status.reason, []).append(status.name)
    ordered = sorted(names_of.items(), key=lambda pair: -len(pair[1]))
    lines = [
        f"{names[0]}: {reason}" if len(names) == 1 else f"{len(names)} points, {names[0]} first: {reason}"
        for reason, names in ordered[:MOST_REASONS]
    ]
    left = len(ordered) - MOST_REASONS
    return [*lines, f"{left} more reasons: see --state failed."] if left > 0 else lines
