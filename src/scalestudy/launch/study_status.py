"""The states of a study's points, derived here, and only here, from their files and the queue's answers."""

import contextlib
import math
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from scalestudy.cluster.private_files import SECRET_FILE, forget_addresses
from scalestudy.config.point import Point
from scalestudy.config.settings import LAUNCHERS
from scalestudy.launch.failures import failure_of_job
from scalestudy.launch.launcher import Overview, PointStatus
from scalestudy.launch.queue.scheduler import QUEUE_ERRORS, UNKNOWN, JobView, Queue
from scalestudy.measure.hang_detection import describe_silence, stalled_seconds
from scalestudy.store.launcher_process import is_alive, is_recent
from scalestudy.store.record_file import read_record, write_record
from scalestudy.store.records import Failure, JobRecord, Record, Result
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.state import (
    UNSUCCESSFUL,
    RunFiles,
    State,
    deciding_run,
    finished_run,
    how_it_failed,
    state_of_files,
)
from scalestudy.store.study_folder import StudyFolder

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
    progress: dict[str, float] = Field(default_factory=dict)
    """`updated` of the progress that each job had reported before the answer."""

    def due(
        self, jobs: Iterable[str], *, now: float, over: Collection[str] = ()
    ) -> bool:
        """Whether to query these jobs again. `over` are the jobs that have ended according to their files."""
        news = any(
            job not in self.jobs or (job in over and not self.jobs[job].waiting)
            for job in jobs
        )
        wait = SHORTEST if news and not self.error else self.interval
        return (
            not 0 <= now - self.tried < wait
        )  # a clock that was set back must not prevent it

    def answered(
        self,
        views: Mapping[str, JobView],
        *,
        now: float,
        progress: Mapping[str, float] | None = None,
    ) -> "Answers":
        """Return the answers updated with a new one; `progress` is what the jobs had reported before it."""
        changed = any(self.jobs.get(job) != view for job, view in views.items())
        over = {job: now for job, view in views.items() if not view.live}
        return Answers(
            asked=now,
            tried=now,
            interval=SHORTEST if changed else min(self.interval * 1.5, LONGEST),
            jobs=dict(views),
            ended=over | {job: time for job, time in self.ended.items() if job in over},
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
    queue: Queue,
    jobs: Iterable[str],
    *,
    now: float,
    cluster: str = "",
    over: Collection[str] = (),
    progress: Mapping[str, float] | None = None,
    must: bool = False,
) -> Answers:
    """Return the queue's answers about these jobs, and query it if they are older than the interval.

    If the queue does not answer, the last answers are returned with the error. The answers are kept in the
    study's folder. `over` are the jobs that have ended according to their files, `progress` is what they have
    reported. With `must`, the queue is asked now, regardless of the interval.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: With `must`, if the queue does not answer.
    """
    wanted = list(dict.fromkeys(jobs))
    answers = read_answers(folder, queue.name)
    if not wanted or not (must or answers.due(wanted, now=now, over=over)):
        return answers
    try:
        answers = answers.answered(
            queue.ask(wanted, cluster=cluster), now=now, progress=progress
        )
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


def read_answers(folder: Path, queue: str) -> Answers:
    """Return the last answers; empty ones, which are due at once, if there are none that can be read."""
    answers = read_record(answers_file(folder, queue), Answers).record
    return answers if answers and math.isfinite(answers.tried) else Answers()


def forget_answers(folder: Path) -> None:
    """Remove the kept answers, so that the next query is made at once."""
    with contextlib.suppress(OSError):
        for file in folder.glob("queue-*.json"):
            file.unlink()


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


def find_jobs(queue: Queue, runs: Sequence[RunFolder]) -> None:
    """Record the job id of each of these runs, or a failure if the queue has no job of it.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer.
        OSError: If a folder cannot be written to.
    """
    jobs = queue.marked()
    for run in runs:
        record = run.job()
        if record is None or record.job:  # recorded meanwhile
            continue
        job = jobs.get(record.submission)
        if job is not None:
            run.write_job(record.model_copy(update={"job": job}))
        else:
            reason = f"{queue.title} never took its job, and did not say so when it was submitted"
            run.write_failure(
                Failure(rank=None, exit_code=None, reason=reason, job_state=LOST)
            )


FILES_LATE = 30.0
"""Seconds that a slow file system may take to show the result of a job that has completed."""


@dataclass(frozen=True)
class Derived:
    """A run's state.

    Attributes:
        state: Any state but "missing".
        over: Whether only the queue reports the failure, so that it has to be recorded.
        revived: Whether the run is in the queue again although a failure was recorded.
    """

    state: State
    over: bool = False
    revived: bool = False


def derive(
    files: RunFiles,
    view: JobView | None,
    *,
    now: float,
    reported: float | None,
    ended: float | None,
) -> Derived:
    """Derive the state of a run from its files and the queue's answer about its job.

    A result takes precedence over everything. For a job that the queue knows, its answer takes precedence
    over the other files, except progress that is newer than the answer. Without an answer, the files decide.

    Args:
        files: The run's files.
        view: The queue's answer; None if there is none.
        now: Unix time.
        reported: `updated` of the progress before the queue's answer; None if there was none.
        ended: Unix time of the first answer that the job is over; None if it is not.
    """
    if files.damage or files.result or view is None or not files.job:
        return Derived(state_of_files(files, now=now))
    fresh = files.fresh(now)
    revived = files.failure is not None
    if view.live:
        # Progress that differs from the one before the answer: the clocks of this host and of the job's node
        # need not agree.
        younger = files.progress is not None and files.progress.updated != reported
        return Derived(
            "queued" if view.waiting and not younger else "running", revived=revived
        )
    return _after(files, view, fresh, None if ended is None else now - ended)


def _after(files: RunFiles, view: JobView, fresh: bool, since: float | None) -> Derived:
    if files.failure is not None:
        return Derived(how_it_failed(files.failure))
    if not view.ended and fresh:  # forgotten by the queue, but still reporting progress
        return Derived("running")
    good = view.state == "COMPLETED" and not files.exit_code
    # Clocks of two login nodes may be compared; a time ahead of this one must not delay the end for ever.
    if good and since is not None and abs(since) < FILES_LATE:
        return Derived("running")
    return Derived("cancelled" if view.state == "CANCELLED" else "failed", over=True)


KILLED = "interrupted: its launcher was killed, or could not write why (a full disk)"


def study_status(
    folder: StudyFolder,
    *,
    must: bool = False,
    known: Overview | None = None,
    names: Sequence[str] | None = None,
) -> Overview:
    """Return the states of the points. A queue is asked about all jobs at once, at limited intervals.

    A job that is over without a result is recorded as failed; the record is removed if the job is in the
    queue again.

    Args:
        folder: The study.
        must: Ask the queue now, and raise if it does not answer.
        known: An earlier overview, whose finished points are not read again unless `names` has them.
        names: With `known`, the points that may have changed since; None for all.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: With `must`, if the queue does not answer.
    """
    now = time.time()
    settled = _settled_before(known, names)
    points = folder.points()
    runs = {
        point.name: PointRun.of(folder, point)
        for point in points
        if point.name not in settled
    }
    answers: dict[str, Answers] = {}
    overview = Overview([])
    for name in dict.fromkeys(run.job.queue for run in runs.values() if run.job):
        queue = queue_of(name)
        if queue is None:
            continue
        runs |= _find_unanswered(folder, queue, runs.values(), must=must)
        open_jobs = {
            job.job: run for run in runs.values() if (job := run.open_job(name))
        }
        cluster = next(
            (run.job.cluster for run in runs.values() if run.job and run.job.cluster),
            "",
        )
        over = [
            job for job, run in open_jobs.items() if run.files.exit_code is not None
        ]
        progress = {
            job: run.files.progress.updated
            for job, run in open_jobs.items()
            if run.files.progress
        }
        answer = poll(
            folder.path,
            queue,
            open_jobs,
            now=now,
            must=must,
            cluster=cluster,
            over=over,
            progress=progress,
        )
        answers[name] = answer
        if open_jobs:
            overview = Overview(
                [], asked=answer.asked, error=answer.error, silent=queue.title
            )
    if known is not None and names is not None and not answers:
        overview = replace(known, points=[])
    statuses = settled | {name: run.status(answers, now) for name, run in runs.items()}
    return replace(overview, points=[statuses[point.name] for point in points])


def queue_of(name: str) -> Queue | None:
    """Return the queue of a launcher; None for a launcher without a queue."""
    return getattr(LAUNCHERS.get(name), "queue", None) if name in LAUNCHERS else None


def _settled_before(
    known: Overview | None, names: Sequence[str] | None
) -> dict[str, PointStatus]:
    return {
        status.name: status
        for status in (known.points if known else [])
        if (
            names is None
            and status.result is not None
            and (status.result.model_missing is None or status.result.timing)
        )
        or (names is not None and status.name not in names)
    }


def _find_unanswered(
    folder: StudyFolder, queue: Queue, runs: "Collection[PointRun]", *, must: bool
) -> "dict[str, PointRun]":
    """Find the jobs of runs whose submission was not answered; return these runs, read again."""
    lost = [
        run
        for run in runs
        if run.run
        and run.job
        and run.job.queue == queue.name
        and not run.files.result
        and is_unanswered(run.run)
    ]
    if not lost:
        return {}
    try:
        with contextlib.suppress(OSError):
            find_jobs(queue, [run.run for run in lost if run.run])
    except QUEUE_ERRORS:
        if must:
            raise
    return {run.point.name: PointRun.of(folder, run.point) for run in lost}


@dataclass(frozen=True)
class PointRun:
    """The run that determines the state of a point, with its files, which are read once."""

    point: Point
    files: RunFiles
    run: RunFolder | None = None
    job: JobRecord | None = None
    result: Result | None = None

    @classmethod
    def of(cls, folder: StudyFolder, point: Point) -> "PointRun":
        """Read the run from its folder."""
        runs = folder.runs(point.name)
        finished = finished_run(runs)
        if finished is not None:
            run, result = finished
            return cls(point, RunFiles(result=True), run, run.job(), result)
        decides = deciding_run(runs)
        if decides is None:
            return cls(point, RunFiles())
        return cls(point, RunFiles.of(decides), decides, decides.job())

    def open_job(self, queue: str) -> JobRecord | None:
        """Return the job to ask about: of a run that has not ended, or that failed and still seems alive."""
        if self.run is None or self.job is None or self.job.queue != queue:
            return None
        if self.files.result or self.files.damage:
            return None
        return (
            self.job
            if self.job.job and (self.files.failure is None or self.run.alive())
            else None
        )

    def status(self, answers: Mapping[str, Answers], now: float) -> PointStatus:
        """Return the state of the point, and record a failure that only the queue knew."""
        run, job = self.run, self.job
        if run is None:
            return PointStatus(self.point, "missing")
        answer = answers.get(job.queue) if job else None
        view = answer.jobs.get(job.job) if answer and job else None
        if view is not None and view.state == UNKNOWN and not is_own_job(run):
            view = None  # ask again later; the job's own user may see it
        if view is not None and view.state == UNKNOWN and run.cancelled.exists():
            view = view.model_copy(update={"state": "CANCELLED"})
        ended = answer.ended.get(view.job) if answer and view else None
        reported = answer.progress.get(view.job) if answer and view else None
        derived = derive(self.files, view, now=now, reported=reported, ended=ended)
        state = _written_down(run, derived, view)
        failure = run.failure() if state in UNSUCCESSFUL else None
        queue = queue_of(job.queue) if job else None
        signs = run.signs() if state == "running" else []
        silent, still = stalled_seconds(signs, now)
        reason = describe_silence(signs, now) if still else self.files.damage
        if failure is not None:
            reason = failure.reason
        elif state in UNSUCCESSFUL:
            reason = (
                KILLED if job is None else f"job {job.job} has ended without a result"
            )
        return PointStatus(
            self.point,
            state,
            reason=reason,
            run=run,
            result=self.result or run.result() if state == "done" else None,
            progress=self.files.progress if state == "running" else None,
            failure=failure,
            job=job,
            view=view,
            waiting=queue.explain(view.reason)
            if queue and view and state == "queued"
            else None,
            silent=silent if signs else None,
            still=still,
        )


def _written_down(run: RunFolder, derived: Derived, view: JobView | None) -> State:
    """Record the queue's answer in the run folder, for users who cannot ask the queue; return the state."""
    with contextlib.suppress(OSError):  # another user's folder may be read-only
        if derived.revived:
            (run.path / "failure.json").unlink(missing_ok=True)
        elif derived.over and view is not None:
            if run.result():  # it may have appeared meanwhile
                return "done"
            run.write_failure(failure_of_job(run, view))
            (run.path / SECRET_FILE).unlink(
                missing_ok=True
            )  # its processes may not have removed it
            forget_addresses(run.path)
    return derived.state
