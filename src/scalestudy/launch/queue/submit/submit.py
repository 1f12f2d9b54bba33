"""Giving the points of a study to a queue: run folders, job scripts, submission, and who has which job."""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from scalestudy.errors import RunError, ScalestudyError
from scalestudy.launch.queue.base import Queue, QueueSilent
from scalestudy.launch.queue.jobs.polling import forget
from scalestudy.launch.queue.script.file import write_script
from scalestudy.launch.queue.submit.mark import Mark, new_mark
from scalestudy.launch.queue.submit.plan import Batch
from scalestudy.launch.queue.submit.resubmission import Submission
from scalestudy.study.point import Point
from scalestudy.study.records import JobRecord
from scalestudy.study.run_folder import RunFolder, write_point
from scalestudy.study.store import StudyFolder

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
class TakenBatch:
    """A batch that the queue has taken."""

    batch: Batch
    job: str
    script: Path


@dataclass(frozen=True)
class Taken:
    """The batches of a plan that the queue has taken, and the error that kept it from taking the rest."""

    batches: list[TakenBatch]
    error: ScalestudyError | None = None


def submit(folder: StudyFolder, plan: JobPlan) -> Taken:
    """Submit the batches one after another, until all are taken or one is not.

    A batch that the queue does not take leaves no run folder, script or job behind; those before it stay. One
    that it may have taken stays too, without the id of its job, which the next look finds.

    Args:
        folder: The study, locked by the caller.
        plan: What to submit.
    """
    forget(folder.path)
    taken: list[TakenBatch] = []
    for batch in plan.batches:
        try:
            with _undisturbed():
                taken.append(_submit(folder, plan, batch, [each.job for each in taken]))
        except ScalestudyError as error:
            return Taken(taken, error)
        except OSError as error:
            refused = RunError(
                "a results folder that can be written to",
                f"{error.filename or folder.path}: {error.strerror}",
                "Make space (see your quota), and submit again.",
            )
            return Taken(taken, refused)
    return Taken(taken)


def _submit(folder: StudyFolder, plan: JobPlan, batch: Batch, jobs: Sequence[str]) -> TakenBatch:
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
                run: record.model_copy(update={"job": job_of(record, plan.queue, job)})
                for run, record in records.items()
            }
        )
        undo.pop_all()
    return TakenBatch(batch, job, script)


def job_of(record: JobRecord, queue: Queue, whole: str) -> str:
    """Id of the job of a run, given that of the job that was submitted."""
    return whole if record.task is None else queue.task(whole, record.task)


class _Unanswered(Exception):
    """The queue may have taken a job or not: it answered neither then nor when it was asked again."""

    def __init__(self, silence: QueueSilent) -> None:
        self.silence = silence


def _job(queue: Queue, script: Path, options: Sequence[str], mark: Mark) -> str:
    """Submit a script; of a busy queue that took the job and was too late to say so, ask for it again."""
    try:
        return queue.submit(script, options)
    except QueueSilent as silence:
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
