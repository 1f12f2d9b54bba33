"""Whether and where a point is submitted (again). Pure but for reading the run's files."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalestudy.launch.queue.jobs.cause import INTERRUPTED
from scalestudy.study.run_folder import RunFolder

if TYPE_CHECKING:
    from scalestudy.launch.queue.jobs.overview import Seen


@dataclass(frozen=True)
class Turn:
    """A submission of a point to come.

    Attributes:
        attempt: 1 for its first submission.
        resume: The run that goes on in its own folder, or None for a new run.
    """

    attempt: int = 1
    resume: RunFolder | None = None


def turn(seen: "Seen", *, limit: int) -> Turn | None:
    """How to submit a point now, or None if it is done, queued or running, or was tried often enough.

    A run that was interrupted (time limit, node failure, preemption, cancelled) and has a checkpoint goes on
    in its own folder; any other starts anew in a new one.

    Args:
        seen: The point as it stands.
        limit: How often a point may be submitted again after its first time.
    """
    if seen.state not in ("failed", "missing"):
        return None
    if seen.job is None or seen.run is None:
        return Turn()
    if seen.job.attempt > limit:
        return None
    return Turn(seen.job.attempt + 1, seen.run if _resumable(seen.run) else None)


def goes_on(seen: "Seen") -> bool:
    """Whether a run was interrupted by the cluster, not by a person, and can go on from its checkpoint."""
    if seen.state != "failed" or seen.job is None or seen.run is None:
        return False
    failure = seen.run.failure()
    return _resumable(seen.run) and failure is not None and failure.job_state != "CANCELLED"


def _resumable(run: RunFolder) -> bool:
    failure = run.failure()
    return failure is not None and failure.job_state in INTERRUPTED and run.checkpoint.exists()
