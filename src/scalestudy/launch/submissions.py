"""Submissions that a queue has not answered, and the jobs that it started for them all the same."""

import os
from collections.abc import Sequence

from scalestudy.launch.scheduler import Scheduler
from scalestudy.store.launcher_process import is_alive, is_recent
from scalestudy.store.records import Failure, JobRecord
from scalestudy.store.run_folder import RunFolder

LOST = "LOST"
"""State recorded for a job that never reached its queue."""


def is_own_job(run: RunFolder) -> bool:
    """Whether this user submitted the run's job or is root.

    A queue may hide the jobs of other users, so that an unknown job means nothing then.
    """
    try:
        return os.geteuid() in (0, (run.path / "job.json").stat().st_uid)
    except OSError:
        return False


def is_unanswered(run: RunFolder) -> bool:
    """Whether a submission was never answered: its process has ended or has waited long enough."""
    if not is_own_job(run):
        return False
    record, launcher = run.job(), run.launcher_process()
    if record is None or record.job or run.result() or run.failure():
        return False
    # The clock of another login node may be compared: apart, they make the queue be asked sooner or later.
    return not (
        launcher is not None and is_alive(launcher) and is_recent(record.submitted)
    )


def find_jobs(
    queue: Scheduler, runs: Sequence[RunFolder]
) -> list[tuple[RunFolder, JobRecord | Failure]]:
    """Return the job of each of these runs, or a failure if the queue has no job of it. Nothing is written.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer.
    """
    jobs = queue.marked()
    found: list[tuple[RunFolder, JobRecord | Failure]] = []
    for run in runs:
        record = run.job()
        if record is None or record.job:  # recorded meanwhile
            continue
        job = jobs.get(record.submission)
        if job is not None:
            found.append((run, record.model_copy(update={"job": job})))
        else:
            reason = f"{queue.title} never took its job, and did not say so when it was submitted"
            failure = Failure(
                rank=None,
                exit_code=None,
                reason=reason,
                job_state=LOST,
            )
            found.append((run, failure))
    return found


def record_jobs(found: Sequence[tuple[RunFolder, JobRecord | Failure]]) -> None:
    """Record what `find_jobs` has found.

    Raises:
        OSError: If a folder cannot be written to.
    """
    for run, record in found:
        if isinstance(record, Failure):
            run.write_failure(record)
        else:
            run.write_job(record)
