"""Submit points to a queue: choose them, create run folders and job scripts, and record the jobs."""

import itertools
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from scalestudy.config.point import Point
from scalestudy.launch.failures import INTERRUPTED
from scalestudy.launch.launcher import Note, Options, Overview, PointStatus
from scalestudy.launch.queue.job_script import render
from scalestudy.launch.queue.point_job import JobScript, layout
from scalestudy.launch.queue.scheduler import UNKNOWN, Queue, QueueUnreachable
from scalestudy.launch.queue.site_profile import Site
from scalestudy.store.records import JobRecord
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.state import UNSUCCESSFUL
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError, ScalestudyError


@dataclass(frozen=True)
class Submission:
    """A planned submission of a point.

    Attributes:
        attempt: Number of the submission, from 1.
        resume: Run to continue in its own folder; None for a new run.
    """

    attempt: int = 1
    resume: RunFolder | None = None


def next_submission(status: PointStatus, *, limit: int) -> Submission | None:
    """Plan the submission of a point; None if it is done, queued or running, or was submitted too often.

    An interrupted run (time limit, node failure, preemption, cancelled) with a checkpoint continues in its
    own folder. Any other starts again in a new folder. A point is submitted again at most `limit` times.
    """
    if not status.runnable:
        return None
    if status.job is None or status.run is None:
        return Submission()
    if status.job.attempt > limit:
        return None
    return Submission(status.job.attempt + 1, status.run if _resumable(status.run) else None)


def next_submissions(
    overview: Overview, names: Sequence[str], options: Options
) -> tuple[dict[str, Submission], list[Note]]:
    """Plan the submissions of these points, in their order, with notes about points that are left out."""
    submissions: dict[str, Submission] = {}
    notes = []
    for status in map(overview.of, names):
        submission = next_submission(status, limit=options.resubmissions)
        if submission is not None:
            submissions[status.name] = submission
        elif status.state in UNSUCCESSFUL and status.job:
            times = "once" if status.job.attempt == 1 else f"{status.job.attempt} times"
            notes.append(
                Note(
                    f"{status.name} has been submitted {times} and is not submitted again; use --resubmit N."
                )
            )
    if options.at_most is None:
        return submissions, notes
    room = max(0, options.at_most - len(overview.open))
    left = len(submissions) - room
    if left > 0 and not options.feeds:
        limit = f"--at-most {options.at_most} allows no more in the queue"
        notes.append(Note(f"{left} point{'s' * (left > 1)} left for later: {limit}; submit again."))
    return dict(itertools.islice(submissions.items(), room)), notes


def goes_on(status: PointStatus) -> bool:
    """Whether a run was interrupted by the cluster, not by a person, and can continue from its checkpoint."""
    if status.state != "failed" or status.job is None or status.run is None:
        return False
    return _resumable(status.run)


def _resumable(run: RunFolder) -> bool:
    failure = run.failure()
    if failure is None or not run.checkpoint.exists():
        return False
    # For a job that its queue has forgotten, the reason is unknown unless a rank recorded it.
    lost = failure.job_state == UNKNOWN and failure.exit_code is None and failure.rank is None
    return lost or failure.job_state in INTERRUPTED


def job_script(point: Point, script: Path, run: Path, site: Site, queue: Queue, submission: str) -> str:
    """Return the job script of a point; `script` and `run` (its folder) are absolute paths."""
    name = f"{point.study}-{point.name}"
    place = site.in_environment(point.environment)
    return render(JobScript(name, script, run, point, layout(point, site), place, submission), queue)


def submit(
    folder: StudyFolder,
    point: Point,
    submission: Submission,
    queue: Queue,
    site: Site,
    cluster: str = "",
) -> str:
    """Submit a point with its prepared data to a queue, and return the id of its job.

    If the queue refuses it, no run folder, script or job is left. If the queue may have accepted it, and on
    Ctrl-C, the run stays without a job id, which a later query of the queue finds.

    Args:
        folder: The study, locked by the caller.
        point: The point.
        submission: Whether to continue a run, and the number of the submission.
        queue: The queue.
        site: The site profile.
        cluster: The queue's name of the cluster.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer, refuses, or is missing.
        RunError: If the folder cannot be written to.
    """
    mark = secrets.token_hex(8)
    with ExitStack() as undo:
        try:
            run = _run(folder, point, submission, undo)
            script = next(path for path in script_paths(folder.path, point.name) if not path.exists())
            _write_script(script, job_script(point, script, run.path.absolute(), site, queue, mark))
            undo.callback(script.unlink, missing_ok=True)
            record = JobRecord(
                queue=queue.name,
                job="",
                submission=mark,
                submitted=time.time(),
                site=site.name,
                script=str(script),
                attempt=submission.attempt,
                cluster=cluster,
            )
            # Written before submission: the job may begin before the queue answers, and reads this file.
            run.write_job(record)
            try:
                job = queue.submit(script)
            except QueueUnreachable:  # a busy queue may have accepted it all the same
                known = _job_of(queue, mark)
                if known is None:
                    (run.path / "failure.json").unlink(missing_ok=True)
                    undo.pop_all()
                if not known:
                    raise
                job = known
            undo.callback(_try_to_cancel, queue, job)
            run.write_job(record.model_copy(update={"job": job}))
            (run.path / "failure.json").unlink(missing_ok=True)
        except OSError as error:
            raise RunError(
                "a writable results folder",
                f"{error.filename or folder.path}: {error.strerror}",
                "Free some space (see your quota), and submit again.",
            ) from error
        except KeyboardInterrupt:
            undo.pop_all()
            raise
        undo.pop_all()
    return job


def _job_of(queue: Queue, mark: str) -> str | None:
    """Return the id of the job with this mark; "" if there is none, None if the queue does not answer."""
    try:
        return queue.marked().get(mark, "")
    except ScalestudyError:
        return None


def _run(folder: StudyFolder, point: Point, submission: Submission, undo: ExitStack) -> RunFolder:
    """Return the folder of a new run, or that of a run to continue, cleared of its last job's files."""
    run = submission.resume
    if run is None:
        run = folder.new_run(point)
        undo.callback(_remove, run)
        return run
    before = run.job()
    if before is not None:
        undo.callback(run.write_job, before)
    run.write_launcher_process()
    write_point(run.path / "point.json", point)
    for left in ("exit", "stop", "began", "requeues", "cancelled"):
        (run.path / left).unlink(missing_ok=True)
    run.forget_signs()
    return run


def _remove(run: RunFolder) -> None:
    shutil.rmtree(run.path, ignore_errors=True)
    with suppress(OSError):
        run.path.parent.rmdir()


def _try_to_cancel(queue: Queue, job: str) -> None:
    with suppress(ScalestudyError):
        queue.cancel([job])


def script_paths(folder: Path, name: str) -> Iterator[Path]:
    """Yield the paths of a point's job scripts: the first one, then those of later submissions."""
    jobs = folder.absolute() / "jobs"
    yield jobs / f"{name}.sh"
    yield from (jobs / f"{name}-{number}.sh" for number in itertools.count(2))


def _write_script(path: Path, text: str) -> None:
    """Write a script that only its owner can read: `env` of the site may hold secrets."""
    path.parent.mkdir(exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "w", encoding="utf-8") as file:
        file.write(text)
