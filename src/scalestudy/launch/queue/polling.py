"""Poll a queue about the jobs of a study, and keep its last answers in the study's folder."""

import contextlib
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from scalestudy.launch.queue.base import QUEUE_ERRORS, JobView, Queue
from scalestudy.store.launcher_process import is_alive, is_recent
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.records import Failure, Record
from scalestudy.store.run_folder import RunFolder

SHORTEST = 2.0
"""Seconds between two queries while jobs change."""
LONGEST = 60.0
"""Seconds between two queries when nothing has changed for long, or the queue does not answer."""
LOST = "LOST"
"""State recorded for a job that never reached its queue."""


class Answers(Record):
    """A queue's last answers, kept in `queue-NAME.json`."""

    asked: float = 0.0
    """Unix time of the last answer."""
    tried: float = 0.0
    """Unix time of the last query."""
    interval: float = SHORTEST
    """Seconds to wait after `tried`; grows while nothing changes."""
    error: str = ""
    """Why the last query had no answer; "" if it had one."""
    jobs: dict[str, JobView] = Field(default_factory=dict)
    ended: dict[str, float] = Field(default_factory=dict)
    """Unix time of the answer that first said that a job is over."""

    def due(self, jobs: Iterable[str], *, now: float, over: Collection[str] = ()) -> bool:
        """Whether to query these jobs again. `over` are the jobs that have ended according to their files."""
        news = any(job not in self.jobs or (job in over and not self.jobs[job].waiting) for job in jobs)
        wait = SHORTEST if news and not self.error else self.interval
        return not 0 <= now - self.tried < wait  # a clock that was set back must not prevent it

    def answered(self, views: Mapping[str, JobView], *, now: float) -> "Answers":
        """Return the answers updated with a new one."""
        changed = any(self.jobs.get(job) != view for job, view in views.items())
        over = {job: now for job, view in views.items() if not view.live}
        return Answers(
            asked=now,
            tried=now,
            interval=SHORTEST if changed else min(self.interval * 1.5, LONGEST),
            jobs=dict(views),
            ended=over | {job: time for job, time in self.ended.items() if job in over},
        )

    def unanswered(self, error: str, *, now: float) -> "Answers":
        """Return the answers after a failed query, which keeps the old ones."""
        interval = min(self.interval * 2, LONGEST)
        return self.model_copy(update={"tried": now, "interval": interval, "error": error})


def poll(
    folder: Path,
    queue: Queue,
    jobs: Iterable[str],
    *,
    now: float,
    cluster: str = "",
    over: Collection[str] = (),
    must: bool = False,
) -> Answers:
    """Return the queue's answers about these jobs, and query it if they are older than the interval.

    If the queue does not answer, the last answers are returned with the error. The answers are kept in the
    study's folder. `over` are the jobs that have ended according to their files. With `must`, the queue is
    asked now, regardless of the interval.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: With `must`, if the queue does not answer.
    """
    wanted = list(dict.fromkeys(jobs))
    answers = load(folder, queue.name)
    if not wanted or not (must or answers.due(wanted, now=now, over=over)):
        return answers
    try:
        answers = answers.answered(queue.ask(wanted, cluster=cluster), now=now)
    except QUEUE_ERRORS as error:
        if must:
            raise
        answers = answers.unanswered(error.received, now=now)
    with contextlib.suppress(OSError):
        # Not durable: if it is lost in a power failure, the queue is asked again.
        write_record(answers_file(folder, queue.name), answers, durable=False)
    return answers


def answers_file(folder: Path, queue: str) -> Path:
    """Return the file of a queue's last answers in a study's folder."""
    return folder / f"queue-{queue}.json"


def load(folder: Path, queue: str) -> Answers:
    """Return the last answers; empty ones, which are due at once, if there are none that can be read."""
    answers = read_record(answers_file(folder, queue), Answers).record
    return answers if answers and math.isfinite(answers.tried) else Answers()


def forget(folder: Path) -> None:
    """Remove the kept answers, so that the next query is made at once."""
    with contextlib.suppress(OSError):
        for file in folder.glob("queue-*.json"):
            file.unlink()


def is_ours(run: RunFolder) -> bool:
    """Whether this user submitted the run's job or is root.

    A queue may hide the jobs of other users, so that an unknown job means nothing then.
    """
    try:
        return os.geteuid() in (0, (run.path / "job.json").stat().st_uid)
    except OSError:
        return False


def is_unanswered(run: RunFolder) -> bool:
    """Whether a submission was never answered: its process has ended or has waited long enough."""
    if not is_ours(run):
        return False
    record, launcher = run.job(), run.launcher_process()
    if record is None or record.job or run.result() or run.failure():
        return False
    return not (launcher is not None and is_alive(launcher) and is_recent(record.submitted))


def find_jobs(queue: Queue, runs: Sequence[RunFolder]) -> None:
    """Record the job id of each of these runs, or a failure if the queue has no job of it.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer.
        OSError: If a folder cannot be written to.
    """
    jobs = {job.mark.submission: job.job for job in queue.marked()}
    for run in runs:
        record = run.job()
        if record is None or record.job:  # recorded meanwhile
            continue
        job = jobs.get(record.submission)
        if job is not None:
            run.write_job(record.model_copy(update={"job": job}))
        else:
            reason = f"{queue.title} never took its job, and did not say so when it was submitted"
            run.write_failure(Failure(rank=None, exit_code=None, reason=reason, job_state=LOST))
