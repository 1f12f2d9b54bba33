"""Whether and where a point is submitted (again). Pure but for reading the run's files."""

from dataclasses import dataclass

from scalestudy.launch.base import PointStatus
from scalestudy.launch.queue.jobs.cause import INTERRUPTED
from scalestudy.study.run_folder import RunFolder


@dataclass(frozen=True)
class Submission:
    """A submission of a point to come.

    Attributes:
        attempt: 1 for its first submission.
        resume: The run that goes on in its own folder, or None for a new run.
    """

    attempt: int = 1
    resume: RunFolder | None = None


def next_submission(status: PointStatus, *, limit: int) -> Submission | None:
    """How to submit a point now, or None if it is done, queued or running, or was tried often enough.

    A run that was interrupted (time limit, node failure, preemption, cancelled) and has a checkpoint goes on
    in its own folder; any other starts anew in a new one.

    Args:
        status: The point as it stands.
        limit: How often a point may be submitted again after its first time.
    """
    if not status.wanting:
        return None
    if status.job is None or status.run is None:
        return Submission()
    if status.job.attempt > limit:
        return None
    return Submission(status.job.attempt + 1, status.run if _resumable(status.run) else None)


def goes_on(status: PointStatus) -> bool:
    """Whether a run was interrupted by the cluster, not by a person, and can go on from its checkpoint."""
    if status.state != "failed" or status.job is None or status.run is None:
        return False
    return _resumable(status.run)


def _resumable(run: RunFolder) -> bool:
    failure = run.failure()
    return failure is not None and failure.job_state in INTERRUPTED and run.checkpoint.exists()
