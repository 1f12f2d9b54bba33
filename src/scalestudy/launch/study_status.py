"""The states of a study's points. Every command takes them from here."""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scalestudy.cluster.private_files import SECRET_FILE, forget_addresses
from scalestudy.launch.launcher import Overview, PointStatus
from scalestudy.launch.point_run import PointRun, StatusReading, queue_of, read_status
from scalestudy.launch.polling import Answers, poll
from scalestudy.launch.scheduler import QUEUE_ERRORS, Scheduler
from scalestudy.launch.submissions import find_jobs, is_unanswered, record_jobs
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder


def study_status(
    folder: StudyFolder,
    *,
    must: bool = False,
    known: Overview | None = None,
    names: Sequence[str] | None = None,
    record: bool = True,
) -> Overview:
    """Return the states of the points. A queue is asked about all jobs at once, at limited intervals.

    With `record`, what only the queue knows is recorded in the run folders, see `record_ends`: a queue without
    accounting forgets a job minutes after its end. Without, nothing is written, as for a dry run: a queue is then
    asked each time, and a job that it has just called over counts as running until an answer is kept.

    Args:
        folder: The study.
        must: Ask the queue now, and raise if it does not answer.
        known: An earlier overview, whose finished points are not read again unless `names` has them.
        names: With `known`, the points that may have changed since; None for all.
        record: Whether to write down what the queue answers.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: With `must`, if the queue does not answer.
    """
    now = time.time()
    statuses = _settled_before(known, names)
    points = folder.points()
    runs = {
        point.name: PointRun.read(folder, point)
        for point in points
        if point.name not in statuses
    }
    answers: dict[str, Answers] = {}
    overview = Overview([])
    for name in dict.fromkeys(run.job.queue for run in runs.values() if run.job):
        queue = queue_of(name)
        if queue is None:
            # The package that provides this launcher is not installed here: the files must do.
            continue
        # First, since these jobs have no id to ask about yet.
        runs |= _find_unanswered(
            folder,
            queue,
            runs.values(),
            must=must,
            record=record,
        )
        open_jobs = _open_jobs(runs.values(), name)
        answer = _ask(
            folder,
            queue,
            open_jobs,
            runs.values(),
            now=now,
            must=must,
            keep=record,
        )
        answers[name] = answer
        if open_jobs:
            overview = Overview(
                [],
                asked=answer.asked,
                error=answer.error,
                queue_title=queue.title,
            )
    # No queue was asked this time: what is shown of its last answer stays.
    if known is not None and names is not None and not answers:
        overview = replace(known, points=[])
    readings = {name: read_status(run, answers, now) for name, run in runs.items()}
    if record:
        record_ends(readings.values())
    statuses |= {name: reading.status for name, reading in readings.items()}
    return replace(overview, points=[statuses[point.name] for point in points])


def record_ends(readings: Iterable[StatusReading]) -> None:
    """Record what only the queue knew, in the run folders, for users who cannot ask the queue.

    A job that is over without a result is recorded as failed; that record is removed if the job is in the
    queue again.
    """
    for reading in readings:
        run = reading.status.run
        if run is None:
            continue
        with contextlib.suppress(OSError):  # another user's folder may be read-only
            if reading.revived:
                (run.path / "failure.json").unlink(missing_ok=True)
            elif reading.end is not None:
                run.write_failure(reading.end)
                _remove_private_files(run)


def _remove_private_files(run: RunFolder) -> None:
    """Remove what the processes of a job may not have removed themselves, since they were killed."""
    (run.path / SECRET_FILE).unlink(missing_ok=True)
    forget_addresses(run.path)


def _settled_before(
    known: Overview | None, names: Sequence[str] | None
) -> dict[str, PointStatus]:
    """Return the points of an earlier overview that need not be read again."""
    if known is None:
        return {}
    settled = {}
    for status in known.points:
        if names is None:
            unchanged = _is_final(status)
        else:
            unchanged = status.name not in names
        if unchanged:
            settled[status.name] = status
    return settled


def _is_final(status: PointStatus) -> bool:
    """Whether a point is done for good. A result is written before its model, which is missing until then."""
    result = status.result
    if result is None:
        return False
    return result.model_missing is None or bool(result.timing)


def _open_jobs(runs: Iterable[PointRun], queue: str) -> dict[str, PointRun]:
    """Return the runs whose jobs the queue is to be asked about, by the job's id."""
    found = {}
    for run in runs:
        job = run.open_job(queue)
        if job is not None:
            found[job.job] = run
    return found


def _ask(
    folder: StudyFolder,
    queue: Scheduler,
    jobs: Mapping[str, PointRun],
    runs: Iterable[PointRun],
    *,
    now: float,
    must: bool,
    keep: bool,
) -> Answers:
    """Return the queue's answers about these jobs, with what their files say meanwhile."""
    over: list[str] = []
    progress: dict[str, float] = {}
    for job, run in jobs.items():
        if run.files.exit_code is not None:
            over.append(job)
        if run.files.progress is not None:
            progress[job] = run.files.progress.updated
    cluster = ""
    for run in runs:
        # "" where the queue did not tell; all others of a study are on one cluster.
        if run.job and run.job.cluster:
            cluster = run.job.cluster
            break
    return poll(
        folder.path,
        queue,
        jobs,
        now=now,
        must=must,
        cluster=cluster,
        over=over,
        progress=progress,
        keep=keep,
    )


def _find_unanswered(
    folder: StudyFolder,
    queue: Scheduler,
    runs: Iterable[PointRun],
    *,
    must: bool,
    record: bool,
) -> Mapping[str, PointRun]:
    """Find the jobs of runs whose submission was not answered; return these runs with them."""
    points, lost = [], []
    for each in runs:
        # A result shows that the job has run, whatever became of the answer to its submission.
        if each.run is None or each.job is None or each.files.result:
            continue
        if each.job.queue == queue.name and is_unanswered(each.run):
            points.append(each.point)
            lost.append(each.run)
    if not lost:
        return {}
    found = []
    try:
        # Another user's folder may be read-only: its states are shown all the same.
        with contextlib.suppress(OSError):
            found = find_jobs(queue, lost)
            if record:
                record_jobs(found)
    except QUEUE_ERRORS:
        if must:
            raise
    # Anew, with the jobs that were recorded just now.
    read = {point.name: PointRun.read(folder, point) for point in points}
    if record:
        return read
    unrecorded = {run.path: answer for run, answer in found}
    for name, point_run in read.items():
        if point_run.run is not None and point_run.run.path in unrecorded:
            read[name] = point_run.with_answer(unrecorded[point_run.run.path])
    return read
