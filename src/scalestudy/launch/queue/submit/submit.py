"""Giving the points of a study to Slurm: run folders, job scripts, sbatch, and who has which job."""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from scalestudy.errors import RunError, ScalestudyError
from scalestudy.launch.queue.jobs.polling import forget
from scalestudy.launch.queue.script.file import write_script
from scalestudy.launch.queue.submit.plan import Batch
from scalestudy.launch.queue.submit.resubmission import Turn
from scalestudy.launch.slurm.queue.cancel import cancel
from scalestudy.launch.slurm.queue.sbatch import options, sbatch
from scalestudy.study.point import Point
from scalestudy.study.records import JobRecord
from scalestudy.study.run_folder import RunFolder, write_point
from scalestudy.study.store import StudyFolder

Script = Callable[[Batch, Sequence[Path]], str]
"""The job script of a batch, given the absolute run folders of its points."""


@dataclass(frozen=True)
class Order:
    """What to submit.

    Attributes:
        batches: Calls of sbatch, in their order.
        points: The points by name, with their prepared data.
        turns: How each is submitted.
        script: Makes the job script of a batch.
        site: Name of the site profile.
        cluster: Slurm's name of the cluster.
    """

    batches: Sequence[Batch]
    points: Mapping[str, Point]
    turns: Mapping[str, Turn]
    script: Script
    site: str
    cluster: str = ""


@dataclass(frozen=True)
class Submitted:
    """A batch that Slurm has taken."""

    batch: Batch
    job: str
    script: Path


@dataclass(frozen=True)
class Outcome:
    """What became of an order: what Slurm has taken, and the error that kept it from taking the rest."""

    taken: list[Submitted]
    error: ScalestudyError | None = None


def submit(folder: StudyFolder, order: Order) -> Outcome:
    """Submit the batches one after another, until all are taken or one is not.

    A batch that Slurm does not take leaves no run folder, script or job behind; those before it stay.

    Args:
        folder: The study, locked by the caller.
        order: What to submit.
    """
    forget(folder.path)
    taken: list[Submitted] = []
    for batch in order.batches:
        try:
            with _undisturbed():
                taken.append(_submit(folder, order, batch, [each.job for each in taken]))
        except ScalestudyError as error:
            return Outcome(taken, error)
        except OSError as error:
            refused = RunError(
                "a results folder that can be written to",
                f"{error.filename or folder.path}: {error.strerror}",
                "Make space (see your quota), and submit again.",
            )
            return Outcome(taken, refused)
    return Outcome(taken)


def _submit(folder: StudyFolder, order: Order, batch: Batch, jobs: Sequence[str]) -> Submitted:
    with ExitStack() as undo:
        runs = [_run(folder, order, name, undo) for name in batch.names]
        text = order.script(batch, [run.path.absolute() for run in runs])
        script = write_script(folder.path, batch, text)
        undo.callback(script.unlink, missing_ok=True)
        job = sbatch(script, options(batch, jobs))
        undo.callback(_try_to_cancel, job)
        for index, (name, run) in enumerate(zip(batch.names, runs, strict=True)):
            record = JobRecord(
                job=job if len(runs) == 1 else f"{job}_{index}",
                submitted=time.time(),
                site=order.site,
                script=str(script),
                attempt=order.turns[name].attempt,
                cluster=order.cluster,
            )
            run.write_job(record)
            (run.path / "failure.json").unlink(missing_ok=True)
        undo.pop_all()
    return Submitted(batch, job, script)


def _run(folder: StudyFolder, order: Order, name: str, undo: ExitStack) -> RunFolder:
    """The folder of a run to submit: a new one, or one that goes on, cleared of what its last job left."""
    run = order.turns[name].resume
    if run is None:
        run = folder.new_run(order.points[name])
        undo.callback(_remove, run)
        return run
    write_point(run.path / "point.json", order.points[name])
    for left in ("exit", "stop"):
        (run.path / left).unlink(missing_ok=True)
    return run


def _remove(run: RunFolder) -> None:
    shutil.rmtree(run.path, ignore_errors=True)
    with suppress(OSError):
        run.path.parent.rmdir()


def _try_to_cancel(job: str) -> None:
    with suppress(ScalestudyError):
        cancel([job])


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
