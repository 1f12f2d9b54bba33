"""The points of a study as lines, as a table, or, if there are many, in groups."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scalestudy.app.selection import PointGroup, waiting_sentences
from scalestudy.launch.launcher import Overview
from scalestudy.report.point_lines import (
    PointLine,
    count_states,
    line_of,
    short_throughput,
)
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
MOST_REASONS = 5
FEWEST_REASONS = 3
"""Number of reasons that are shown even on a small terminal."""
OPEN = ("queued", "missing")
JOB_WIDTH = 24
"""Least width of the column of jobs, whose words wrap."""
FEWEST_ROWS = 3


def describe_queue_error(overview: Overview) -> str:
    """A sentence on a queue that does not answer: the error, and the age of its last answer."""
    age = units.duration(time.time() - overview.asked)
    if overview.asked:
        last = f"its last answer is {age} old"
    else:
        last = "it has never answered"
    return f"{overview.queue_title} does not answer ({overview.error}); {last}."


def _age(row: PointLine) -> str:
    if row.silent is None:
        return ""
    if not row.silent:
        return "now"
    return f"{units.duration(row.silent)} ago"


def _bar(row: PointLine) -> RenderableType:
    if row.state in ("done", "running"):
        return ProgressBar(1.0, row.share, width=12)
    return ""


def _quality(row: PointLine) -> str:
    if row.quality is None:
        return ""
    return f"{row.quality:.4f}"


def _left(row: PointLine) -> str:
    if row.seconds_left is None:
        return ""
    return units.duration(row.seconds_left)


def _state(row: PointLine) -> Text:
    text = f"{row.state} {row.phase}".rstrip()
    if row.restarts and row.state == "running":
        text = f"{text}, restart {row.restarts}"
    return Text(text, style=STYLES.get(row.state, ""))


@dataclass(frozen=True)
class _Column:
    """A column of the table: its heading, and the cell of a row."""

    heading: str
    cell: Callable[[PointLine], RenderableType]
    justify: Literal["left", "right"] = "left"


NAME = _Column("point", lambda row: Text(row.name))
STATE = _Column("state", _state)
JOB = _Column("job", lambda row: Text(row.job))
BAR = _Column("", _bar)
RATE = _Column("samples/s", lambda row: short_throughput(row.throughput), "right")
SIGN = _Column("last sign", _age, "right")
QUALITY = _Column("quality", _quality, "right")
LEFT = _Column("left", _left, "right")
COLUMNS = (NAME, STATE, BAR, RATE, QUALITY, LEFT, SIGN, JOB)
DROPPED = (BAR, RATE, SIGN, QUALITY, LEFT, JOB)
"""Columns that a narrow terminal does without, in this order, so that names and states stay whole."""


def overview_table(overview: Overview, height: int) -> RenderableType:
    """The points as a table, with the age of the queue's last answer if it does not answer."""
    # What the sentences below take is no room for rows.
    below = waiting_sentences(overview.points)
    if overview.error:
        below.append(describe_queue_error(overview))
    lines = [line_of(status) for status in overview.points]
    table = points_table(lines, height - len(below))
    if below:
        return Group(table, *_texts(below, "yellow"))
    return table


def _texts(sentences: Sequence[str], style: str) -> list[Text]:
    return [Text(sentence, style=style) for sentence in sentences]


def points_table(rows: Sequence[PointLine], height: int) -> "PointsTable":
    """All rows, or those around the current one if they need more than `height` lines."""
    return PointsTable(tuple(rows), height)


@dataclass(frozen=True)
class PointsTable:
    """A table of points that fits the terminal: it drops columns, and counts the rows that it leaves out."""

    rows: tuple[PointLine, ...]
    height: int

    def __rich_console__(
        self,
        console: Console,
        options: ConsoleOptions,
    ) -> RenderResult:
        """Render it in the width and height there are."""
        reasons = [f"{row.name}: {row.reason}" for row in self.rows if row.reason]
        room = max(self.height - len(self.rows), FEWEST_REASONS)
        hidden = max(len(reasons) - room, 0)
        below = _texts(reasons[hidden:], "red")
        if hidden:
            more = f"{hidden} more reasons: see `scalestudy status --state failed`."
            below.append(Text(more))
        below.append(Text(count_states([row.state for row in self.rows])))
        columns = self._columns(console, options)

        def laid(most: int) -> Group:
            shown = _window(self.rows, most)
            left = len(self.rows) - len(shown)
            blocks: list[RenderableType] = [_table(columns, shown)]
            if left:
                blocks.append(Text(f"… {left} more points.", style="dim"))
            return Group(*blocks, *below)

        most = min(len(self.rows), self.height)
        whole = laid(most)
        # Without a height, rich crops no lines, which are to be counted.
        unlimited = options.update(height=None)
        # Names and reasons may wrap, so how many rows fit is known only once they are laid out.
        while most > FEWEST_ROWS:
            lines = console.render_lines(whole, unlimited, pad=False)
            over = len(lines) - self.height
            if over <= 0:
                break
            most = max(most - over, FEWEST_ROWS)
            whole = laid(most)
        yield whole

    def _columns(self, console: Console, options: ConsoleOptions) -> list[_Column]:
        """The columns for which there is room, beside the whole names."""
        columns = list(COLUMNS)
        # Runs on this machine have no jobs, and finished ones give no sign.
        if not any(row.job for row in self.rows):
            columns.remove(JOB)
        if all(row.silent is None for row in self.rows):
            columns.remove(SIGN)
        # Otherwise the measure is capped at the width.
        unbounded = options.update(max_width=10_000)
        for dropped in DROPPED:
            fixed = [column for column in columns if column is not JOB]
            table = _table(fixed, self.rows)
            needed = console.measure(table, options=unbounded).maximum
            if JOB in columns:
                needed += JOB_WIDTH
            if needed <= options.max_width:
                break
            if dropped in columns:
                columns.remove(dropped)
        return columns


def _table(columns: Sequence[_Column], rows: Sequence[PointLine]) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in columns:
        # A name is wrapped rather than shortened: it is what other commands are given.
        if column in (NAME, JOB):
            table.add_column(column.heading, justify=column.justify, overflow="fold")
        else:
            table.add_column(column.heading, justify=column.justify, no_wrap=True)
    for row in rows:
        table.add_row(*[column.cell(row) for column in columns])
    return table


def _window(rows: Sequence[PointLine], height: int) -> Sequence[PointLine]:
    if len(rows) <= height:
        return rows
    states = [row.state for row in rows]
    # What runs is what the user looks for, else what is next.
    current = _first_of(("running",), states)
    if current is None:
        current = _first_of(OPEN, states)
    if current is None:
        current = len(rows)
    start = min(max(current - height // 2, 0), len(rows) - height)
    return rows[start : start + height]


def _first_of(wanted: Sequence[str], states: Sequence[str]) -> int | None:
    """Return the index of the first of these states; None if there is none."""
    for index, state in enumerate(states):
        if state in wanted:
            return index
    return None


def groups_table(groups: Sequence[PointGroup], overview: Overview) -> RenderableType:
    """A line for each group, then each reason with the number of points that have it."""
    present: set[str] = set()
    for group in groups:
        present.update(group.states)
    states = [state for state in STYLES if state in present]
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
    )
    table.add_column("points", overflow="fold")
    table.add_column("", justify="right", no_wrap=True)
    for state in states:
        table.add_column(state, justify="right", no_wrap=True)
    for group in groups:
        cells = []
        for state in states:
            count = group.states.get(state, 0)
            shown = str(count) if count else ""
            cells.append(Text(shown, style=STYLES[state]))
        table.add_row(Text(group.title), str(len(group.points)), *cells)
    return Group(
        table,
        *_texts(state_reasons(overview), "red"),
        *_texts(waiting_sentences(overview.points), "yellow"),
        Text(count_states([status.state for status in overview.points])),
    )


def state_reasons(overview: Overview) -> list[str]:
    """The most common reasons of failures: "12 points, native-w2-s0 first: out of memory"."""
    names_of: dict[str, list[str]] = {}
    for status in overview.failed:
        names_of.setdefault(status.reason, []).append(status.name)
    # The most common first; equally common ones stay in the order of the study.
    ordered = sorted(names_of, key=lambda reason: -len(names_of[reason]))
    lines = []
    for reason in ordered[:MOST_REASONS]:
        names = names_of[reason]
        if len(names) == 1:
            lines.append(f"{names[0]}: {reason}")
        else:
            lines.append(f"{len(names)} points, {names[0]} first: {reason}")
    left = len(ordered) - MOST_REASONS
    if left > 0:
        lines.append(f"{left} more reasons: see --state failed.")
    return lines
