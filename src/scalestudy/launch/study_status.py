"""The states of a study's points. Every command takes them from here."""

import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from scalestudy.cluster.private_files import SECRET_FILE, forget_addresses
from scalestudy.config.point import Point
from scalestudy.config.settings import LAUNCHERS
from scalestudy.launch.derived_state import Derived, derive
from scalestudy.launch.job_failures import failure_of_job
from scalestudy.launch.job_view import UNKNOWN, JobView
from scalestudy.launch.launcher import Overview, PointStatus
from scalestudy.launch.polling import Answers, poll
from scalestudy.launch.scheduler import QUEUE_ERRORS, Scheduler
from scalestudy.launch.submissions import find_jobs, is_own_job, is_unanswered
from scalestudy.measure.silence import describe_silence, stalled_seconds
from scalestudy.store.records import JobRecord, Result
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.state import (
    UNSUCCESSFUL,
    RunFiles,
    State,
    deciding_run,
    finished_run,
)
from scalestudy.store.study_folder import StudyFolder

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


def queue_of(name: str) -> Scheduler | None:
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
    folder: StudyFolder, queue: Scheduler, runs: "Collection[PointRun]", *, must: bool
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
