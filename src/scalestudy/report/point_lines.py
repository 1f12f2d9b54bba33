"""A point of a study as shown while it runs, in a terminal and on the live page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scalestudy.launch.launcher import PointStatus
from scalestudy.store.records import Progress, Result
from scalestudy.util import units
from scalestudy.util.text import plural

STATES = ("done", "failed", "cancelled", "running", "queued", "missing", "corrupt")
"""States in the order in which they are counted."""


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
        first = f"{count} {self.name} {self.state} {self.phase}"
        parts = [first.rstrip()]
        if self.reason:
            parts.append(self.reason)
        if self.throughput is not None:
            parts.append(f"{short_throughput(self.throughput)} samples/s")
        if self.training_seconds is not None:
            parts.append(f"{units.duration(self.training_seconds)} of training")
        if self.quality is not None:
            parts.append(f"quality {self.quality:.4f}")
        return ", ".join(parts)


def line_of(status: PointStatus) -> PointLine:
    """A point with its progress, and its job with its nodes or the reason why it waits."""
    name, state = status.name, status.state
    if status.result is not None:
        return _finished_line(status, status.result)
    if state != "running":
        line = PointLine(name, state, reason=status.reason)
    else:
        progress = _of_this_life(status)
        line = replace(running_line(name, progress), silent=status.silent)
        if status.still:
            # Without progress there is no pace.
            line = replace(
                line,
                throughput=None,
                seconds_left=None,
                reason=status.reason,
            )
    # Without a queue there is no job whose nodes or whose waiting could be named.
    if status.job is None:
        return line
    return replace(line, job=_job_text(status, status.job.job))


def _finished_line(status: PointStatus, result: Result) -> PointLine:
    mark, reasons = "", []
    if status.disturbed:
        mark = "(disturbed)"
        reasons.append(f"its times are too long: {status.disturbed}")
    elif result.oversubscribed:
        mark = "(oversubscribed)"
    # A timing run has no model to save.
    if not result.timing and result.model_missing is not None:
        reasons.append(f"its model is missing: {result.model_missing}")
    return PointLine(
        status.name,
        status.state,
        1.0,
        mark,
        result.throughput,
        result.quality,
        training_seconds=result.training_seconds,
        reason="; ".join(reasons),
    )


def _job_text(status: PointStatus, job: str | None) -> str:
    """A job with its nodes, or with the reason why it waits and its expected start."""
    view = status.view
    text = "job not known yet"
    if job:
        text = f"job {job}"
    if status.state == "running" and view and view.nodes:
        text += f" on {view.nodes}"
    if status.state == "queued" and view:
        if status.waiting:
            text += f": {status.waiting.short}"
        if view.start:
            text += f", expected {view.start.replace('T', ' ')}"
    if status.run and (requeues := status.run.requeues()):
        text += f", queued again {requeues} times"
    return text


def running_line(name: str, progress: Progress | None) -> PointLine:
    """A running point at this progress."""
    if progress is None:
        return PointLine(name, "running", phase="start-up")
    of_epoch = min(progress.step / max(progress.steps, 1), 1.0)
    epochs_done = max(progress.epoch - 1, 0) + of_epoch
    phase: str = progress.phase
    if progress.epoch:
        phase = f"{progress.epoch}/{progress.epochs}"
    return PointLine(
        name,
        "running",
        min(epochs_done / max(progress.epochs, 1), 1.0),
        phase,
        progress.throughput,
        progress.quality,
        progress.seconds_left,
        restarts=progress.restarts,
    )


def short_throughput(value: float | None) -> str:
    """Format a throughput with at least three digits."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def count_states(states: Sequence[str]) -> str:
    """`8 points: 3 done, 1 running, 4 missing`."""
    parts = []
    for state in STATES:
        count = states.count(state)
        # Of seven states, most have no point.
        if count:
            parts.append(f"{count} {state}")
    total = f"{len(states)} {plural('point', len(states))}"
    return f"{total}: {', '.join(parts)}"


def _of_this_life(status: PointStatus) -> Progress | None:
    """The progress, unless it is from before the job was requeued."""
    progress, job = status.progress, status.job
    if progress is None or job is None:
        return progress
    # Clocks of the queue, this host and the node: apart, they only hide or show an old progress for a while.
    begun = None
    if status.view:
        begun = _unix(status.view.start)
    if progress.updated < max(begun or 0.0, job.submitted):
        return None
    return progress


def _unix(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
