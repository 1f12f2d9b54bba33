"""A point of a study in a line: its state, progress and job, in numbers that a person reads."""

import time
from dataclasses import dataclass, replace
from datetime import datetime

from scalestudy.launch.base import Overview, PointStatus
from scalestudy.study.records import Progress
from scalestudy.util import units

STYLES = {
    "done": "green", "failed": "red", "cancelled": "magenta", "running": "bold cyan", "queued": "yellow",
    "missing": "dim", "corrupt": "bold red",
}  # fmt: skip
"""How a terminal shows each state."""


@dataclass(frozen=True)
class PointLine:
    """A point as shown: `share` of its training is done, its last sign of life `silent` seconds old."""

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


def line_of(status: PointStatus) -> PointLine:
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
    view, text = status.view, f"job {job.job}" if job.job else "job not known yet"
    if state == "running" and view and view.nodes:
        text += f" on {view.nodes}"
    if state == "queued" and view:
        text += f": {status.waits}" + (
            f", expected {view.start.replace('T', ' ')}" if view.start and not view.held else ""
        )
    requeues = status.run.requeues() if status.run else ""
    return replace(line, job=text + (f", queued again {requeues} times" if requeues else ""))


def running_line(name: str, progress: Progress | None) -> PointLine:
    """A point that is running, at this progress."""
    if progress is None:
        return PointLine(name, "running", phase="start-up")
    steps = max(progress.steps, 1)
    share = (max(progress.epoch - 1, 0) + min(progress.step / steps, 1.0)) / max(progress.epochs, 1)
    phase = f"{progress.epoch}/{progress.epochs}" if progress.epoch else progress.phase
    return PointLine(
        name, "running", min(share, 1.0), phase, progress.throughput, progress.quality,
        progress.seconds_left, restarts=progress.restarts,
    )  # fmt: skip


def figure(value: float | None) -> str:
    """A throughput with three digits at least."""
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def silence(overview: Overview) -> str:
    """That the queue does not answer, why, and how old its last word is."""
    age = units.duration(time.time() - overview.asked)
    last = f"its last word is {age} old" if overview.asked else "it never did"
    return f"{overview.silent} does not answer ({overview.error}); {last}."


def _of_this_life(status: PointStatus) -> Progress | None:
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
