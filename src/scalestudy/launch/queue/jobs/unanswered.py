"""Runs whose submission had no answer: their job is found in the queue by its mark, or is not there."""

from collections.abc import Sequence

from scalestudy.launch.queue.base import Queue
from scalestudy.launch.queue.submit.submit import job_of
from scalestudy.study.launcher_process import is_alive, is_recent
from scalestudy.study.records import Failure
from scalestudy.study.run_folder import RunFolder

LOST = "LOST"
"""State of a job that was never in its queue."""


def unanswered(run: RunFolder) -> bool:
    """Whether nobody knows the job of this run any more: who submitted it has gone, or waited long enough."""
    record, owner = run.job(), run.launcher_process()
    if record is None or record.job or run.result() or run.failure():
        return False
    return not (owner is not None and is_alive(owner) and is_recent(record.submitted))


def find_jobs(queue: Queue, runs: Sequence[RunFolder]) -> None:
    """Name the job of each of these runs in its record, or write down that the queue has none.

    Raises:
        QueueSilent, QueueRefused, QueueAbsent: If it does not say.
        OSError: If a folder cannot be written to.
    """
    wholes = {each.mark.submission: each.whole for each in queue.marked()}
    for run in runs:
        record = run.job()
        if record is None or record.job:  # it has begun meanwhile
            continue
        whole = wholes.get(record.submission)
        if whole is not None:
            run.write_job(record.model_copy(update={"job": job_of(record, queue, whole)}))
        else:
            reason = f"{queue.title} never took its job, and did not say so when it was submitted"
            run.write_failure(Failure(rank=None, exit_code=None, reason=reason, job_state=LOST))
