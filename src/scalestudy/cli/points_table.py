"""The points of a study as lines, as a table, or, if there are many, in groups."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scalestudy.app.selection import PointGroup, waiting_sentences
from scalestudy.launch.launcher import Overview, PointStatus
from scalestudy.store.records import Progress
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


@dataclass(frozen=True)
class PointLine:
    """A point as shown: `share` of its training is done; its last sign of life is `silent` seconds old."""

    name: str
    state: str
    share: float = 0.0
    phase: str = ""
    throughput: float | None = None
    quality: float | None = None
    seconds_left: float | None = None
    training_seconds: float | None = None
    reason: str = ""
    job: str = ""
    silent: int | None = None
    restarts: int = 0

    def line(self, count: str) -> str:
        """Format as a plain line, for logs."""
        parts = [f"{count} {self.name} {self.state} {self.phase}".rstrip()]
        if self.reason:
            parts.append(self.reason)
        if self.throughput is not None:
            parts.append(f"{figure(self.throughput)} samples/s")
        if self.training_seconds is not None:
            parts.append(f"{units.duration(self.training_seconds)} of training")
        if self.quality is not None:
            parts.append(f"quality {self.quality:.4f}")
        return ", ".join(parts)


def line_of(status: PointStatus) -> PointLine:
    """A point with its progress, and its job with its nodes or the reason why it waits."""
    name, state, job = status.name, status.state, status.job
    if status.result is not None:
        result = status.result
        missing = None if result.timing else result.model_missing
        mark, reasons = "", []
        if status.disturbed:
            mark = "(disturbed)"
            reasons.append(f"its times are too long: {status.disturbed}")
        elif result.oversubscribed:
            mark = "(oversubscribed)"
        if missing is not None:
            reasons.append(f"its model is missing: {missing}")
        return PointLine(
            name,
            state,
            1.0,
            mark,
            result.throughput,
            result.quality,
            training_seconds=result.training_seconds,
            reason="; ".join(reasons),
        )
    if state == "running":
        line = replace(running_line(name, _of_this_life(status)), silent=status.silent)
        if status.still:  # without progress there is no pace
            line = replace(line, throughput=None, seconds_left=None, reason=status.reason)
    else:
        line = PointLine(name, state, reason=status.reason)
    if job is None:
        return line
    view, text = status.view, f"job {job.job}" if job.job else "job not known yet"
    if state == "running" and view and view.nodes:
        text += f" on {view.nodes}"
    if state == "queued" and view:
        text += f": {status.waiting.short}" if status.waiting else ""
        text += f", expected {view.start.replace('T', ' ')}" if view.start else ""
    if status.run and (requeues := status.run.requeues()):
        text += f", queued again {requeues} times"
    return replace(line, job=text)


def running_line(name: str, progress: Progress | None) -> PointLine:
    """A running point at this progress."""
    if progress is None:
        return PointLine(name, "running", phase="start-up")
    steps = max(progress.steps, 1)
    share = (max(progress.epoch - 1, 0) + min(progress.step / steps, 1.0)) / max(progress.epochs, 1)
    phase = f"{progress.epoch}/{progress.epochs}" if progress.epoch else progress.phase
    return PointLine(
        name,
        "running",
        min(share, 1.0),
        phase,
        progress.throughput,
        progress.quality,
        progress.seconds_left,
        restarts=progress.restarts,
    )


def figure(value: float | None) -> str:
    """Format a throughput with at least three digits."""
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def silence(overview: Overview) -> str:
    """A sentence on a queue that does not answer: the error, and the age of its last answer."""
    age = units.duration(time.time() - overview.asked)
    last = f"its last answer is {age} old" if overview.asked else "it has never answered"
    return f"{overview.silent} does not answer ({overview.error}); {last}."


def _of_this_life(status: PointStatus) -> Progress | None:
    """The progress, unless it is from before the job was requeued."""
    progress, job = status.progress, status.job
    if progress is None or job is None:
        return progress
    # Clocks of the queue, this host and the node: apart, they only hide or show an old progress for a while.
    begun = _unix(status.view.start) if status.view else None
    return None if progress.updated < max(begun or 0.0, job.submitted) else progress


def _unix(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


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
