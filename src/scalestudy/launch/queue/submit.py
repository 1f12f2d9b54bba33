"""Giving the points of a study to a queue: batches, run folders, job scripts, and who has which job."""

import itertools
import os
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from scalestudy.launch.base import PointStatus
from scalestudy.launch.queue.base import UNKNOWN, Mark, Queue, QueueUnreachable, new_mark, no_mark
from scalestudy.launch.queue.failure import INTERRUPTED
from scalestudy.launch.queue.polling import forget
from scalestudy.study.point import Point
from scalestudy.study.records import JobRecord
from scalestudy.study.run_folder import RunFolder, write_point
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import RunError, ScalestudyError

LARGEST_ARRAY = 1000
"""Tasks of one array, where the queue does not say how many it takes."""


@dataclass(frozen=True)
class PlannedPoint:
    """A point to submit.

    Attributes:
        name: Its name.
        like: What its job script depends on; points with equal ones can share an array.
        reference: Whether others are measured against it: it has one worker.
    """

    name: str
    like: Hashable
    reference: bool = False


@dataclass(frozen=True)
class Batch:
    """One submission.

    Attributes:
        names: Its points; more than one make an array.
        afterok: Indices of earlier batches that must have succeeded.
    """

    names: tuple[str, ...]
    afterok: tuple[int, ...] = ()


def plan(
    wanted: Sequence[PlannedPoint],
    *,
    reference_first: bool = False,
    arrays: bool = True,
    largest: int = LARGEST_ARRAY,
) -> list[Batch]:
    """The submissions, in their order; a batch depends on earlier ones only.

    Args:
        wanted: Points, in the order of their runs.
        reference_first: Whether all others wait for the references to succeed.
        arrays: Whether points that are alike and follow each other share an array.
        largest: Tasks that one array may have; more points become several.
    """
    if reference_first:
        wanted = sorted(wanted, key=lambda point: not point.reference)  # else in the same order
    groups = _groups(wanted, largest if arrays else 1)
    first = tuple(index for index, group in enumerate(groups) if reference_first and group[0].reference)
    return [
        Batch(tuple(point.name for point in group), () if group[0].reference else first) for group in groups
    ]


def _groups(wanted: Sequence[PlannedPoint], largest: int) -> list[list[PlannedPoint]]:
    """Neighbours that are alike: whatever else shared an array would leave its place in the order."""
    groups: list[list[PlannedPoint]] = []
    for point in wanted:
        last = groups[-1] if groups else []
        alike = last and (last[0].like, last[0].reference) == (point.like, point.reference)
        if alike and len(last) < largest:
            last.append(point)
        else:
            groups.append([point])
    return groups


@dataclass(frozen=True)
class Submission:
    """A submission of a point to come.

    Attributes:
        attempt: 1 for its first submission.
        resume: The run that goes on in its own folder, or None for a new run.
    """

    attempt: int = 1
    resume: RunFolder | None = None


def next_submission(status: PointStatus, *, limit: int) -> Submission | None:
    """How to submit a point now, or None if it is done, queued or running, or was tried often enough.

    A run that was interrupted (time limit, node failure, preemption, cancelled) and has a checkpoint goes on
    in its own folder; any other starts anew in a new one.

    Args:
        status: The point as it stands.
        limit: How often a point may be submitted again after its first time.
    """
    if not status.runnable:
        return None
    if status.job is None or status.run is None:
        return Submission()
    if status.job.attempt > limit:
        return None
    return Submission(status.job.attempt + 1, status.run if _resumable(status.run) else None)


def goes_on(status: PointStatus) -> bool:
    """Whether a run was interrupted by the cluster, not by a person, and can go on from its checkpoint."""
    if status.state != "failed" or status.job is None or status.run is None:
        return False
    return _resumable(status.run)


def _resumable(run: RunFolder) -> bool:
    failure = run.failure()
    if failure is None or not run.checkpoint.exists():
        return False
    # How a job ended that its queue has forgotten is unknown, unless a rank has said it.
    lost = failure.job_state == UNKNOWN and failure.exit_code is None and failure.rank is None
    return lost or failure.job_state in INTERRUPTED


def script_path(folder: Path, batch: Batch, number: int = 1) -> Path:
    """Absolute path of a batch's script; later ones of the same name are numbered."""
    name = script_name(batch)
    return folder.absolute() / "jobs" / (f"{name}.sh" if number == 1 else f"{name}-{number}.sh")


def script_name(batch: Batch) -> str:
    """Name of a batch's script: its point's, or what the names of an array's points have in common."""
    if len(batch.names) == 1:
        return batch.names[0]
    parts = zip(*(name.split("-") for name in batch.names), strict=False)
    common = "-".join(part[0] for part in itertools.takewhile(lambda part: len(set(part)) == 1, parts))
    return f"{common or batch.names[0]}-x{len(batch.names)}"


def write_script(folder: Path, batch: Batch, text: str) -> Path:
    """Write a script under a name that no earlier one has: each tells what was submitted.

    It is its owner's alone: `env` and `proxies` of a site profile may hold what others must not know.

    Args:
        folder: The study's.
        batch: What it submits.
        text: The script.
    """
    (folder / "jobs").mkdir(exist_ok=True)
    for number in itertools.count(1):
        path = script_path(folder, batch, number)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        except FileExistsError:
            continue
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return path
    raise AssertionError


Script = Callable[[Batch, Sequence[Path], Mark], str]
"""The job script of a batch, given the absolute run folders of its points, and its mark."""


@dataclass(frozen=True)
class JobPlan:
    """What to submit.

    Attributes:
        queue: Where to.
        batches: Submissions, in their plan.
        points: The points by name, with their prepared data.
        submissions: How each is submitted.
        script: Makes the job script of a batch.
        site: Name of the site profile.
        cluster: The queue's own name of the cluster.
    """

    queue: Queue
    batches: Sequence[Batch]
    points: Mapping[str, Point]
    submissions: Mapping[str, Submission]
    script: Script
    site: str
    cluster: str = ""


@dataclass(frozen=True)
class SubmittedBatch:
    """A batch that the queue has taken."""

    batch: Batch
    job: str
    script: Path


@dataclass(frozen=True)
class Submissions:
    """The batches of a plan that the queue has taken, and the error that kept it from taking the rest."""

    batches: list[SubmittedBatch]
    error: ScalestudyError | None = None


def submit(folder: StudyFolder, plan: JobPlan) -> Submissions:
    """Submit the batches one after another, until all are taken or one is not.

    A batch that the queue does not take leaves no run folder, script or job behind; those before it stay. One
    that it may have taken stays too, without the id of its job, which the next look finds.

    Args:
        folder: The study, locked by the caller.
        plan: What to submit.
    """
    forget(folder.path)
    taken: list[SubmittedBatch] = []
    for batch in plan.batches:
        try:
            with _undisturbed():
                taken.append(_submit(folder, plan, batch, [each.job for each in taken]))
        except ScalestudyError as error:
            return Submissions(taken, error)
        except OSError as error:
            refused = RunError(
                "a results folder that can be written to",
                f"{error.filename or folder.path}: {error.strerror}",
                "Make space (see your quota), and submit again.",
            )
            return Submissions(taken, refused)
    return Submissions(taken)


def _submit(folder: StudyFolder, plan: JobPlan, batch: Batch, jobs: Sequence[str]) -> SubmittedBatch:
    with ExitStack() as undo:
        mark = new_mark(folder.path)
        runs = [_run(folder, plan, name, undo) for name in batch.names]
        text = plan.script(batch, [run.path.absolute() for run in runs], mark)
        script = write_script(folder.path, batch, text)
        undo.callback(script.unlink, missing_ok=True)
        records = {}
        for index, (name, run) in enumerate(zip(batch.names, runs, strict=True)):
            # Before the queue is asked: the job may begin before it has answered, and looks for this.
            records[run] = JobRecord(
                queue=plan.queue.name,
                job="",
                submission=mark.submission,
                task=index if len(runs) > 1 else None,
                submitted=time.time(),
                site=plan.site,
                script=str(script),
                attempt=plan.submissions[name].attempt,
                cluster=plan.cluster,
            )
            run.write_job(records[run])
        try:
            job = _job(plan.queue, script, plan.queue.options(batch, jobs), mark)
        except _Unanswered as unanswered:
            _settle(records)
            undo.pop_all()
            raise unanswered.silence from None
        undo.callback(_try_to_cancel, plan.queue, job)
        _settle(
            {
                run: record.model_copy(update={"job": plan.queue.job_of(record, job)})
                for run, record in records.items()
            }
        )
        undo.pop_all()
    return SubmittedBatch(batch, job, script)


class _Unanswered(Exception):
    """The queue may have taken a job or not: it answered neither then nor when it was asked again."""

    def __init__(self, silence: QueueUnreachable) -> None:
        self.silence = silence


def _job(queue: Queue, script: Path, options: Sequence[str], mark: Mark) -> str:
    """Submit a script; of a busy queue that took the job and was too late to say so, ask for it again."""
    try:
        return queue.submit(script, options)
    except QueueUnreachable as silence:
        try:
            found = next((each.whole for each in queue.marked() if each.mark == mark), None)
        except ScalestudyError:
            raise _Unanswered(silence) from None
        if found is None:
            raise
        return found


def _settle(records: Mapping[RunFolder, JobRecord]) -> None:
    for run, record in records.items():
        run.write_job(record)
        (run.path / "failure.json").unlink(missing_ok=True)


def _run(folder: StudyFolder, plan: JobPlan, name: str, undo: ExitStack) -> RunFolder:
    """The folder of a run to submit: a new one, or one that goes on, cleared of what its last job left."""
    run = plan.submissions[name].resume
    if run is None:
        run = folder.new_run(plan.points[name])
        undo.callback(_remove, run)
        return run
    before = run.job()
    if before is not None:
        undo.callback(run.write_job, before)
    run.write_launcher_process()
    write_point(run.path / "point.json", plan.points[name])
    for left in ("exit", "stop", "began", "requeues"):
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


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep Ctrl-C and the end of a session waiting, so that no job is left that no run knows of."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    caught: list[int] = []
    before = {
        number: signal.signal(number, lambda caught_one, _: caught.append(caught_one)) for number in numbers
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise KeyboardInterrupt


def dry_run(folder: Path, plan: JobPlan) -> Iterator[tuple[str, str]]:
    """For each batch the script, and the line of a shell that would submit it; nothing is written.

    Args:
        folder: Results folder of the study, which need not exist.
        plan: What would be submitted.
    """
    for index, batch in enumerate(plan.batches):
        path = script_path(folder, batch)
        jobs = [f'"$job{each + 1}"' for each in range(index)]
        line = " ".join([plan.queue.submits, *plan.queue.options(batch, jobs), shlex.quote(str(path))])
        runs = [_expected_run(folder, name, plan.submissions[name]) for name in batch.names]
        yield plan.script(batch, runs, no_mark(folder)), f"job{index + 1}=$({line})"


def _expected_run(folder: Path, name: str, submission: Submission) -> Path:
    if submission.resume is not None:
        return submission.resume.path.absolute()
    parent = folder.absolute() / "points" / name
    numbers = [int(path.name[4:]) for path in parent.glob("run-*") if path.name[4:].isdigit()]
    return parent / f"run-{max(numbers, default=0) + 1}"
