"""A point of a study as shown while it runs, in a terminal and on the live page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scalestudy.launch.launcher import PointStatus
from scalestudy.store.records import Progress
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
        parts = [f"{count} {self.name} {self.state} {self.phase}".rstrip()]
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
            line = replace(
                line, throughput=None, seconds_left=None, reason=status.reason
            )
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
    share = (max(progress.epoch - 1, 0) + min(progress.step / steps, 1.0)) / max(
        progress.epochs, 1
    )
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


def short_throughput(value: float | None) -> str:
    """Format a throughput with at least three digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def count_states(states: Sequence[str]) -> str:
    """`8 points: 3 done, 1 running, 4 missing`."""
    parts = []
    for state in STATES:
        count = states.count(state)
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
    begun = _unix(status.view.start) if status.view else None
    return None if progress.updated < max(begun or 0.0, job.submitted) else progress


def _unix(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
