"""Giving points to a queue: batches, run folders, job scripts, and who has which job."""

import itertools
import os
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from scalestudy.launch.base import PointStatus
from scalestudy.launch.failures import INTERRUPTED
from scalestudy.launch.queue.base import (
    LARGEST_ARRAY,
    UNKNOWN,
    JobMark,
    Queue,
    QueueUnreachable,
    new_mark,
    study_digest,
)
from scalestudy.launch.queue.polling import forget
from scalestudy.study.point import Point
from scalestudy.study.records import JobRecord
from scalestudy.study.run_folder import RunFolder, write_point
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import RunError, ScalestudyError


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


@dataclass(frozen=True)
class JobBatch:
    """One submission.

    Attributes:
        names: Its points; more than one make an array.
        afterok: Indices of earlier batches that must have succeeded.
    """

    names: tuple[str, ...]
    afterok: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Its point's name, or what the names of an array's points have in common."""
        if len(self.names) == 1:
            return self.names[0]
        parts = zip(*(name.split("-") for name in self.names), strict=False)
        common = "-".join(part[0] for part in itertools.takewhile(lambda part: len(set(part)) == 1, parts))
        return f"{common or self.names[0]}-x{len(self.names)}"


def plan_batches(
    names: Sequence[str],
    like: Callable[[str], object],
    *,
    references: set[str],
    reference_first: bool = False,
    largest: int = LARGEST_ARRAY,
) -> list[JobBatch]:
    """The submissions, in their order; a batch depends on earlier ones only.

    Args:
        names: Points, in the order of their runs.
        like: What a point's job script depends on; neighbours with equal ones share an array.
        references: Those that others are measured against: they have one worker.
        reference_first: Whether all others wait for the references to succeed.
        largest: Tasks that one array may have; more points become several.
    """
    if reference_first:
        names = sorted(names, key=lambda name: name not in references)  # else in the same order
    groups: list[tuple[str, ...]] = []
    for _, neighbours in itertools.groupby(names, key=lambda name: (like(name), name in references)):
        alike = tuple(neighbours)
        groups += [alike[start : start + largest] for start in range(0, len(alike), largest)]
    first = tuple(index for index, group in enumerate(groups) if reference_first and group[0] in references)
    return [JobBatch(group, () if group[0] in references else first) for group in groups]


@dataclass(frozen=True)
class JobPlan:
    """What to submit.

    Attributes:
        queue: Where to.
        batches: Submissions, in their plan.
        points: The points by name, with their prepared data.
        submissions: How each is submitted.
        script: Makes the job script of points, given their absolute run folders, and a mark.
        site: Name of the site profile.
        cluster: The queue's own name of the cluster.
    """

    queue: Queue
    batches: Sequence[JobBatch]
    points: Mapping[str, Point]
    submissions: Mapping[str, Submission]
    script: Callable[[Sequence[str], Sequence[Path], JobMark], str]
    site: str
    cluster: str = ""


def submit(folder: StudyFolder, plan: JobPlan) -> Iterator[tuple[JobBatch, str]]:
    """Submit the batches one after another: each that the queue has taken, with the id of its job.

    One that the queue does not take leaves no run folder, script or job behind. One that it may have taken
    stays, without the id of its job, which the next look finds.

    Args:
        folder: The study, locked by the caller.
        plan: What to submit.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: If the queue does not answer, or refuses.
        RunError: If the folder cannot be written to.
    """
    forget(folder.path)
    jobs: list[str] = []
    for batch in plan.batches:
        try:
            with _undisturbed():
                jobs.append(_submit(folder, plan, batch, [jobs[index] for index in batch.afterok]))
        except OSError as error:
            raise RunError(
                "a results folder that can be written to",
                f"{error.filename or folder.path}: {error.strerror}",
                "Make space (see your quota), and submit again.",
            ) from error
        yield batch, jobs[-1]


def _submit(folder: StudyFolder, plan: JobPlan, batch: JobBatch, afterok: Sequence[str]) -> str:
    with ExitStack() as undo:
        mark = new_mark(folder.path)
        runs = [_run(folder, plan, name, undo) for name in batch.names]
        script = write_script(
            folder.path, batch, plan.script(batch.names, [run.path.absolute() for run in runs], mark)
        )
        undo.callback(script.unlink, missing_ok=True)
        records = {
            run: JobRecord(
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
            for index, (name, run) in enumerate(zip(batch.names, runs, strict=True))
        }
        for run, record in records.items():
            # Before the queue is asked: the job may begin before it has answered, and looks for this.
            run.write_job(record)
        try:
            job = plan.queue.submit(script, plan.queue.options(afterok))
        except QueueUnreachable:
            try:  # a busy queue may have taken the job, and be too late to say so
                found = next((known.whole for known in plan.queue.marked() if known.mark == mark), None)
            except ScalestudyError:
                _settle(records)
                undo.pop_all()
                found = None
            if found is None:
                raise
            job = found
        undo.callback(_try_to_cancel, plan.queue, job)
        _settle(
            {
                run: record.model_copy(update={"job": plan.queue.job_of(record, job)})
                for run, record in records.items()
            }
        )
        undo.pop_all()
    return job


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
    caught: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: caught.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise KeyboardInterrupt


def script_path(folder: Path, batch: JobBatch, number: int = 1) -> Path:
    """Absolute path of a batch's script; later ones of the same name are numbered."""
    return folder.absolute() / "jobs" / (f"{batch.name}.sh" if number == 1 else f"{batch.name}-{number}.sh")


def write_script(folder: Path, batch: JobBatch, text: str) -> Path:
    """Write a script under a name that no earlier one in the study's folder has.

    It is its owner's alone: `env` and `proxies` of a site profile may hold what others must not know.
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


def dry_run(folder: Path, plan: JobPlan) -> Iterator[tuple[str, str]]:
    """For each batch the script, and the line of a shell that would submit it; nothing is written.

    Args:
        folder: Results folder of the study, which need not exist.
        plan: What would be submitted.
    """
    for index, batch in enumerate(plan.batches):
        jobs = [f'"$job{earlier + 1}"' for earlier in batch.afterok]
        path = shlex.quote(str(script_path(folder, batch)))
        line = " ".join([plan.queue.submits, *plan.queue.options(jobs), path])
        runs = [_expected_run(folder, name, plan.submissions[name]) for name in batch.names]
        mark = JobMark(study_digest(folder), "0" * 16)
        yield plan.script(batch.names, runs, mark), f"job{index + 1}=$({line})"


def _expected_run(folder: Path, name: str, submission: Submission) -> Path:
    if submission.resume is not None:
        return submission.resume.path.absolute()
    parent = folder.absolute() / "points" / name
    numbers = [int(path.name[4:]) for path in parent.glob("run-*") if path.name[4:].isdigit()]
    return parent / f"run-{max(numbers, default=0) + 1}"
