"""A queue's last answer about a study, kept in its folder, so that nobody asks too often."""

import contextlib
import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from pydantic import Field

from scalestudy.launch.queue.base import Queue, QueueAbsent, QueueRefused, QueueSilent
from scalestudy.launch.queue.jobs.view import JobView
from scalestudy.study.record_file import read_record, write_record
from scalestudy.study.records import Record

SHORTEST = 2.0
"""Seconds between two questions while things change."""
LONGEST = 60.0
"""Seconds between two questions when nothing has changed for long, or nobody answers."""
GROWTH = 1.5


class Answers(Record):
    """`queue-NAME.json`."""

    asked: float = 0.0
    """Unix time of the last answer."""
    tried: float = 0.0
    """Unix time of the last question."""
    interval: float = SHORTEST
    """Seconds to wait after `tried`."""
    error: str = ""
    """Why the last question had no answer; "" if it had one."""
    jobs: dict[str, JobView] = Field(default_factory=dict)
    ended: dict[str, float] = Field(default_factory=dict)
    """Unix time of the answer that first said that a job is over."""


def due(answers: Answers, jobs: Iterable[str], *, now: float, over: Collection[str] = ()) -> bool:
    """Whether to ask again.

    Args:
        answers: The last answer.
        jobs: Jobs in question.
        now: Unix time.
        over: Those whose files say that they have ended.
    """
    news = any(job not in answers.jobs or (job in over and not answers.jobs[job].waiting) for job in jobs)
    wait = SHORTEST if news and not answers.error else answers.interval
    return not 0 <= now - answers.tried < wait  # a clock set back must not keep it from asking


def answered(answers: Answers, views: Mapping[str, JobView], *, now: float) -> Answers:
    """The answers after a new one: the interval grows while nothing changes."""
    changed = any(answers.jobs.get(job) != view for job, view in views.items())
    over = {job: now for job, view in views.items() if not view.live}
    return Answers(
        asked=now,
        tried=now,
        interval=SHORTEST if changed else min(answers.interval * GROWTH, LONGEST),
        jobs=dict(views),
        ended=over | {job: time for job, time in answers.ended.items() if job in over},
    )


def unanswered(answers: Answers, error: str, *, now: float) -> Answers:
    """The answers after a question without one: the old one stays, the interval grows faster."""
    interval = min(max(answers.interval, SHORTEST) * 2, LONGEST)
    return answers.model_copy(update={"tried": now, "interval": interval, "error": error})


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
    """The queue's view of these jobs, not older than the interval, or the last one with the error.

    Args:
        folder: The study's, where the answer is kept; one that cannot be written to is asked for each time.
        queue: Who is asked.
        jobs: Ids.
        now: Unix time.
        cluster: Cluster that the jobs were given to.
        over: Those whose files say that they have ended.
        must: Ask now, whatever the interval; without an answer raise.

    Raises:
        QueueSilent, QueueRefused, QueueAbsent: With `must`, if it does not answer.
    """
    wanted = list(dict.fromkeys(jobs))
    answers = load(folder, queue.name)
    if not wanted or not (must or due(answers, wanted, now=now, over=over)):
        return answers
    try:
        answers = answered(answers, queue.ask(wanted, cluster=cluster), now=now)
    except (QueueSilent, QueueRefused, QueueAbsent) as error:
        if must:
            raise
        reason = error.reason if isinstance(error, QueueSilent) else error.received
        answers = unanswered(answers, reason, now=now)
    with contextlib.suppress(OSError):
        # Lost in a power cut, it is asked for again.
        write_record(answers_file(folder, queue.name), answers, durable=False)
    return answers


def answers_file(folder: Path, queue: str) -> Path:
    """Where the last answer of a queue is kept in a study's folder."""
    return folder / f"queue-{queue}.json"


def load(folder: Path, queue: str) -> Answers:
    """The last answer; an empty one where there is none to go by: it is asked for again then."""
    answers = read_record(answers_file(folder, queue), Answers).record
    return answers if answers and math.isfinite(answers.tried) else Answers()


def forget(folder: Path) -> None:
    """Have the next question asked at once."""
    with contextlib.suppress(OSError):
        for file in folder.glob("queue-*.json"):
            file.unlink()
