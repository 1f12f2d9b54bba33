"""The points of a study as a table: state, epoch, throughput, quality, time left."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from scalestudy import units

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scalestudy.launch.base import PointStatus
    from scalestudy.study.records import Progress

STYLES = {
    "done": "green", "failed": "red", "cancelled": "magenta", "running": "bold cyan", "queued": "yellow",
    "missing": "dim", "corrupt": "bold red",
}  # fmt: skip

OPEN = ("queued", "missing")


@dataclass(frozen=True)
class PointLine:
    """A point as shown.

    `share` is the part of its training that is done, `job` the job that has it, `silent` the seconds since
    its last sign of life.
    """

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
        """As a plain line, for logs."""
        parts = [f"{count} {self.name} {self.state}"]
        if self.reason:
            parts.append(self.reason)
        if self.throughput is not None:
            parts.append(f"{figure(self.throughput)} samples/s")
        if self.training_seconds is not None:
            parts.append(f"{units.duration(self.training_seconds)} of training")
        if self.quality is not None:
            parts.append(f"quality {self.quality:.4f}")
        return ", ".join(parts)


def line_of(status: "PointStatus") -> PointLine:
    """A point with its progress, and its job with its nodes or with what it waits for."""
    name, state, job = status.name, status.state, status.job
    if status.result is not None:
        result = status.result
        missing = result.model_missing
        return PointLine(
            name, state, 1.0, "", result.throughput, result.quality, training_seconds=result.training_seconds,
            reason="" if missing is None else f"its model is missing: {missing}",
        )  # fmt: skip
    if state == "running":
        line = replace(running_line(name, _of_this_life(status)), silent=status.silent)
        if status.still:  # no pace, so no time left
            line = replace(line, throughput=None, seconds_left=None)
    else:
        line = PointLine(name, state, reason=status.reason)
    if job is None:
        return line
    view, told = status.view, f"job {job.job}" if job.job else "job not known yet"
    if state == "running" and view and view.nodes:
        told += f" on {view.nodes}"
    if state == "queued" and view:
        told += f": {status.waits}" + (
            f", expected {view.start.replace('T', ' ')}" if view.start and not view.held else ""
        )
    requeues = status.run.requeues() if status.run else ""
    return replace(line, job=told + (f", queued again {requeues} times" if requeues else ""))


def running_line(name: str, progress: "Progress | None") -> PointLine:
    """A point that is running, at this progress."""
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


def points_table(rows: Sequence[PointLine], height: int) -> "RenderableType":
    """All rows, or those around the first unfinished one if they need more than `height` lines."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    told = [row for row in rows if row.reason][-3:]
    shown = _window(rows, max(height - len(told), 3))
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
    reasons = [Text(f"{row.name}: {row.reason}", style="red") for row in told]
    return Group(table, *reasons, Text(counts([row.state for row in rows])))


def counts(states: Sequence[str]) -> str:
    """`8 points: 3 done, 1 running, 4 missing`."""
    found = [(state, states.count(state)) for state in STYLES]
    noun = "point" if len(states) == 1 else "points"
    return f"{len(states)} {noun}: " + ", ".join(f"{count} {state}" for state, count in found if count)


def figure(value: float | None) -> str:
    """A throughput with three digits at least."""
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


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


def _of_this_life(status: "PointStatus") -> "Progress | None":
    """The progress, unless it is of the job's life before it was put back into the queue."""
    progress, job = status.progress, status.job
    if progress is None or job is None:
        return progress
    begun = _unix(status.view.start) if status.view else None
    return None if progress.updated < max(begun or 0.0, job.submitted) else progress


def _unix(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
