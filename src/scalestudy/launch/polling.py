"""A queue's answers about jobs, kept in the study's folder, and asked for at limited intervals."""

import contextlib
import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from pydantic import Field

from scalestudy.launch.job_view import JobView
from scalestudy.launch.scheduler import QUEUE_ERRORS, Scheduler
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.records import Record

SHORTEST = 2.0
"""Seconds between two queries while jobs change."""
LONGEST = 60.0
"""Seconds between two queries when nothing has changed for long, or the queue does not answer."""


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
    progress: dict[str, float] = Field(default_factory=dict)
    """`updated` of the progress that each job had reported before the answer."""

    def due(
        self,
        jobs: Iterable[str],
        *,
        now: float,
        over: Collection[str] = (),
    ) -> bool:
        """Whether to query these jobs again. `over` are the jobs that have ended according to their files."""
        wait = self.interval
        if not self.error and any(self._is_news(job, over) for job in jobs):
            wait = SHORTEST
        since = now - self.tried
        # A clock that was set back must not prevent it.
        return since < 0 or since >= wait

    def _is_news(self, job: str, over: Collection[str]) -> bool:
        """Whether the queue has not been asked about a job, or not since the job's files said that it ended."""
        if job not in self.jobs:
            return True
        return job in over and not self.jobs[job].waiting

    def answered(
        self,
        views: Mapping[str, JobView],
        *,
        now: float,
        progress: Mapping[str, float] | None = None,
    ) -> "Answers":
        """Return the answers updated with a new one; `progress` is what the jobs had reported before it."""
        # Longer while nothing changes: each query loads the one controller that all users share.
        interval = min(self.interval * 1.5, LONGEST)
        ended = {}
        for job, view in views.items():
            if self.jobs.get(job) != view:
                interval = SHORTEST
            if not view.live:
                ended[job] = self.ended.get(job, now)
        return Answers(
            asked=now,
            tried=now,
            interval=interval,
            jobs=dict(views),
            ended=ended,
            progress=dict(progress or {}),
        )

    def unanswered(self, error: str, *, now: float) -> "Answers":
        """Return the answers after a failed query, which keeps the old ones."""
        interval = min(self.interval * 2, LONGEST)
        return self.model_copy(
            update={"tried": now, "interval": interval, "error": error}
        )


def poll(
    folder: Path,
    queue: Scheduler,
    jobs: Iterable[str],
    *,
    now: float,
    cluster: str = "",
    over: Collection[str] = (),
    progress: Mapping[str, float] | None = None,
    must: bool = False,
    keep: bool = True,
) -> Answers:
    """Return the queue's answers about these jobs, and query it if they are older than the interval.

    If the queue does not answer, the last answers are returned with the error. `over` are the jobs that have
    ended according to their files, `progress` is what they have reported. With `must`, the queue is asked now,
    regardless of the interval. With `keep`, new answers are kept in the study's folder.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: With `must`, if the queue does not answer.
    """
    wanted = list(dict.fromkeys(jobs))
    answers = read_answers(folder, queue.name)
    if not wanted:
        return answers
    if not must and not answers.due(wanted, now=now, over=over):
        return answers
    try:
        views = queue.ask(wanted, cluster=cluster)
    except QUEUE_ERRORS as error:
        if must:
            raise
        # With `keep`, the time of the attempt is kept, so that other processes do not ask at once, too.
        answers = answers.unanswered(error.received, now=now)
    else:
        answers = answers.answered(views, now=now, progress=progress)
    if not keep:
        return answers
    with contextlib.suppress(OSError):
        # Not durable: if it is lost in a power failure, the queue is asked again.
        write_record(answers_file(folder, queue.name), answers, durable=False)
    return answers


def answers_file(folder: Path, queue: str) -> Path:
    """Return the file of a queue's last answers in a study's folder."""
    return folder / f"queue-{queue}.json"


def read_answers(folder: Path, queue: str) -> Answers:
    """Return the last answers; empty ones, which are due at once, if there are none that can be read."""
    answers = read_record(answers_file(folder, queue), Answers).record
    # NaN compares with nothing: the queue would never be due.
    if answers is None or not math.isfinite(answers.tried):
        return Answers()
    return answers


def forget_answers(folder: Path) -> None:
    """Remove the kept answers, so that the next query is made at once."""
    with contextlib.suppress(OSError):
        for file in folder.glob("queue-*.json"):
            file.unlink()
