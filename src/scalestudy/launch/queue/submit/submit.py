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
from scalestudy.launch.queue.base import Queue
from scalestudy.launch.queue.jobs.polling import forget
from scalestudy.launch.queue.script.file import write_script
from scalestudy.launch.queue.submit.plan import Batch
from scalestudy.launch.queue.submit.resubmission import Submission
from scalestudy.study.point import Point
from scalestudy.study.records import JobRecord
from scalestudy.study.run_folder import RunFolder, write_point
from scalestudy.study.store import StudyFolder

Script = Callable[[Batch, Sequence[Path]], str]
"""The job script of a batch, given the absolute run folders of its points."""


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

    A batch that the queue does not take leaves no run folder, script or job behind; those before it stay.

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
        runs = [_run(folder, plan, name, undo) for name in batch.names]
        text = plan.script(batch, [run.path.absolute() for run in runs])
        script = write_script(folder.path, batch, text)
        undo.callback(script.unlink, missing_ok=True)
        job = plan.queue.submit(script, plan.queue.options(batch, jobs))
        undo.callback(_try_to_cancel, plan.queue, job)
        for index, (name, run) in enumerate(zip(batch.names, runs, strict=True)):
            record = JobRecord(
                queue=plan.queue.name,
                job=job if len(runs) == 1 else plan.queue.task(job, index),
                submitted=time.time(),
                site=plan.site,
                script=str(script),
                attempt=plan.submissions[name].attempt,
                cluster=plan.cluster,
            )
            run.write_job(record)
            (run.path / "failure.json").unlink(missing_ok=True)
        undo.pop_all()
    return TakenBatch(batch, job, script)


def _run(folder: StudyFolder, plan: JobPlan, name: str, undo: ExitStack) -> RunFolder:
    """The folder of a run to submit: a new one, or one that goes on, cleared of what its last job left."""
    run = plan.submissions[name].resume
    if run is None:
        run = folder.new_run(plan.points[name])
        undo.callback(_remove, run)
        return run
    write_point(run.path / "point.json", plan.points[name])
    for left in ("exit", "stop"):
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
