"""Slurm's last answer about a study, kept in its folder, so that nobody asks too often."""

import contextlib
import math
from collections.abc import Collection, Iterable
from pathlib import Path

from pydantic import Field, ValidationError

from scalestudy.launch.slurm.queue.ask_jobs import ask_jobs
from scalestudy.launch.slurm.queue.client import SlurmAbsent, SlurmRefused, SlurmSilent
from scalestudy.launch.slurm.queue.parse_jobs import JobView
from scalestudy.study.atomic import write_atomically
from scalestudy.study.records import Record

SHORTEST = 2.0
"""Seconds between two questions while things change."""
LONGEST = 60.0
"""Seconds between two questions when nothing has changed for long, or nobody answers."""
GROWTH = 1.5


class Queue(Record):
    """`queue.json`."""

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


def due(queue: Queue, jobs: Iterable[str], *, now: float, over: Collection[str] = ()) -> bool:
    """Whether to ask again.

    Args:
        queue: The last answer.
        jobs: Jobs in question.
        now: Unix time.
        over: Those whose files say that they have ended.
    """
    news = any(job not in queue.jobs or (job in over and not queue.jobs[job].waiting) for job in jobs)
    wait = SHORTEST if news and not queue.error else queue.interval
    return not 0 <= now - queue.tried < wait  # a clock set back must not keep it from asking


def answered(queue: Queue, views: dict[str, JobView], *, now: float) -> Queue:
    """The queue after an answer: the interval grows while nothing changes."""
    changed = any(queue.jobs.get(job) != view for job, view in views.items())
    over = {job: now for job, view in views.items() if not view.live}
    return Queue(
        asked=now,
        tried=now,
        interval=SHORTEST if changed else min(queue.interval * GROWTH, LONGEST),
        jobs=views,
        ended=over | {job: time for job, time in queue.ended.items() if job in over},
    )


def unanswered(queue: Queue, error: str, *, now: float) -> Queue:
    """The queue after a question without an answer: the old one stays, the interval grows faster."""
    interval = min(max(queue.interval, SHORTEST) * 2, LONGEST)
    return queue.model_copy(update={"tried": now, "interval": interval, "error": error})


def poll(
    folder: Path,
    jobs: Iterable[str],
    *,
    now: float,
    cluster: str = "",
    over: Collection[str] = (),
    must: bool = False,
) -> Queue:
    """Slurm's view of these jobs, not older than the interval, or the last one with the error.

    Args:
        folder: The study's, where the answer is kept; one that cannot be written to is asked for each time.
        jobs: Ids.
        now: Unix time.
        cluster: Cluster that the jobs were given to.
        over: Those whose files say that they have ended.
        must: Ask now, whatever the interval; without an answer raise.

    Raises:
        SlurmSilent: With `must`, if Slurm does not answer.
        SlurmRefused: With `must`, if it refuses to.
        SlurmAbsent: With `must`, if there is no Slurm.
    """
    wanted = list(dict.fromkeys(jobs))
    queue = load(folder)
    if not wanted or not (must or due(queue, wanted, now=now, over=over)):
        return queue
    try:
        queue = answered(queue, ask_jobs(wanted, cluster=cluster), now=now)
    except (SlurmSilent, SlurmRefused, SlurmAbsent) as error:
        if must:
            raise
        reason = error.reason if isinstance(error, SlurmSilent) else error.received
        queue = unanswered(queue, reason, now=now)
    with contextlib.suppress(OSError):
        write_atomically(folder / "queue.json", queue.model_dump_json(indent=1))
    return queue


def load(folder: Path) -> Queue:
    """The last answer; an empty one where there is none."""
    try:
        queue = Queue.model_validate_json((folder / "queue.json").read_bytes())
    except (OSError, ValidationError):
        return Queue()
    return queue if math.isfinite(queue.tried) else Queue()


def forget(folder: Path) -> None:
    """Have the next question asked at once."""
    with contextlib.suppress(OSError):
        (folder / "queue.json").unlink()
