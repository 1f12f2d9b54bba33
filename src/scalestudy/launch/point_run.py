"""The run that determines the state of a point, and the state that follows from its files and its queue."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from scalestudy.config.point import Point
from scalestudy.launch.derived_state import derive
from scalestudy.launch.job_failures import failure_of_job
from scalestudy.launch.job_view import UNKNOWN, JobView
from scalestudy.launch.launcher import LAUNCHERS, PointStatus
from scalestudy.launch.polling import Answers
from scalestudy.launch.scheduler import Scheduler
from scalestudy.launch.submissions import is_own_job
from scalestudy.measure.silence import describe_silence, silent_seconds
from scalestudy.store.records import Failure, JobRecord, Result
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.state import UNSUCCESSFUL, RunFiles, read_deciding_run
from scalestudy.store.study_folder import StudyFolder

KILLED = "interrupted: its launcher was killed, or could not write why (a full disk)"


@dataclass(frozen=True)
class PointRun:
    """The run that determines the state of a point, with its files, which are read once."""

    point: Point
    files: RunFiles
    run: RunFolder | None = None
    job: JobRecord | None = None
    result: Result | None = None

    @classmethod
    def read(cls, folder: StudyFolder, point: Point) -> Self:
        """Read the run from its folder."""
        decides = read_deciding_run(folder.runs(point.name))
        if decides is None:
            return cls(point, RunFiles())
        run, job = decides.run, None
        if decides.files.job:
            job = run.job()
        return cls(point, decides.files, run, job, decides.result)

    def with_answer(self, answer: JobRecord | Failure) -> Self:
        """Return this run as it would be read if the queue's answer to its submission were recorded."""
        if isinstance(answer, Failure):
            return replace(self, files=replace(self.files, failure=answer))
        return replace(self, job=answer)

    def open_job(self, queue: str) -> JobRecord | None:
        """Return the job to ask about: of a run that has not ended, or that failed and still seems alive."""
        if self.run is None or self.job is None or self.job.queue != queue:
            return None
        if not self.job.job or self.files.result or self.files.damage:
            return None
        if self.files.failure is not None and not self.run.alive():
            return None
        return self.job


@dataclass(frozen=True)
class StatusReading:
    """The state of a point as read, and what its run folder does not say yet.

    Attributes:
        status: The state.
        end: The failure that only the queue reports; None if there is none to record.
        revived: Whether the run is in the queue again although a failure is recorded.
    """

    status: PointStatus
    end: Failure | None = None
    revived: bool = False


def read_status(
    point_run: PointRun,
    answers: Mapping[str, Answers],
    now: float,
) -> StatusReading:
    """Return the state of a point. Nothing is written.

    Args:
        point_run: The run that determines it.
        answers: The last answers of each queue, by name.
        now: Unix time.
    """
    run, job, files = point_run.run, point_run.job, point_run.files
    if run is None:
        return StatusReading(PointStatus(point_run.point, "missing"))
    view, reported, ended = None, None, None
    if job and job.queue in answers:
        answer = answers[job.queue]
        view = _believable_view(run, answer.jobs.get(job.job))
        reported = answer.progress.get(job.job)
        ended = answer.ended.get(job.job)
    derived = derive(
        files,
        view,
        now=now,
        reported=reported,
        ended=ended,
    )
    status = PointStatus(
        point_run.point,
        derived.state,
        run=run,
        job=job,
        view=view,
    )
    if derived.over and run.result():
        # It may have appeared since the files were read, before the queue was asked.
        status = replace(status, state="done")
    end = None
    if status.state == "done":
        # A result that appeared since is not among the files that were read.
        status = replace(status, result=point_run.result or run.result())
    elif status.state == "queued":
        queue = None
        if job:
            queue = queue_of(job.queue)
        if queue and view:
            status = replace(status, waiting=queue.explain(view.reason))
    elif status.state == "running":
        status = _with_progress(status, run, files, now)
    elif status.state in UNSUCCESSFUL:
        if derived.over and view is not None:
            end = failure_of_job(run, view)
        failure = end or files.failure
        status = replace(status, failure=failure, reason=_reason(failure, job))
    else:
        status = replace(status, reason=files.damage)
    return StatusReading(status, end=end, revived=derived.revived)


def queue_of(name: str) -> Scheduler | None:
    """Return the queue of a launcher; None for a launcher without a queue."""
    if name not in LAUNCHERS:
        return None
    queue: Scheduler | None = getattr(LAUNCHERS.get(name), "queue", None)
    return queue


def _believable_view(run: RunFolder, view: JobView | None) -> JobView | None:
    """Return the queue's view of a run's job, or None if an answer "unknown" says nothing about it."""
    if view is None or view.state != UNKNOWN:
        return view
    if not is_own_job(run):
        # A queue may hide the jobs of others, so that only the job's own user can tell that it has ended.
        return None
    if run.cancelled.exists():
        # A queue without accounting forgets a job minutes after its end, and how it ended.
        return view.model_copy(update={"state": "CANCELLED"})
    return view


def _with_progress(
    status: PointStatus,
    run: RunFolder,
    files: RunFiles,
    now: float,
) -> PointStatus:
    """Add the progress of a running run, and which rank it waits for if it stands still."""
    status = replace(status, progress=files.progress)
    signs = run.signs()
    if not signs:
        return status
    silent, still = silent_seconds(signs, now)
    reason = ""
    if still:
        reason = describe_silence(signs, now)
    return replace(
        status,
        silent=silent,
        still=still,
        reason=reason,
    )


def _reason(failure: Failure | None, job: JobRecord | None) -> str:
    """Return why a run failed; without a recorded failure, all that is known of its end."""
    if failure is not None:
        return failure.reason
    if job is None:
        return KILLED
    return f"job {job.job} has ended without a result"
