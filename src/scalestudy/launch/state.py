"""The state of a run from its files and from what Slurm says of its job. Pure."""

from dataclasses import dataclass

from scalestudy.launch.slurm.queue.parse_jobs import JobView
from scalestudy.study.owner import REMOTE_SILENCE
from scalestudy.study.records import Failure, Progress
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import State

FILES_LATE = 30.0
"""Seconds for a result to appear, after its job's good end, on a file system that is slow to show it."""


@dataclass(frozen=True)
class Files:
    """What the files of a run say: each part None or false where there is none."""

    result: bool = False
    failure: Failure | None = None
    progress: Progress | None = None
    exit_code: int | None = None
    checkpoint: bool = False

    @classmethod
    def of(cls, run: RunFolder) -> "Files":
        """Read them."""
        if run.result():
            return cls(result=True)
        return cls(False, run.failure(), run.progress(), run.exit_code(), run.checkpoint.exists())


@dataclass(frozen=True)
class Derived:
    """A run's state.

    Attributes:
        state: "done", "failed", "running" or "queued".
        over: Whether Slurm's word alone makes it failed, which is worth writing down.
        revived: Whether it was written down as failed, and is in the queue again all the same.
    """

    state: State
    over: bool = False
    revived: bool = False


def derive(files: Files, view: JobView | None, *, now: float, asked: float, ended: float | None) -> Derived:
    """Hold the files against Slurm's word.

    The result counts before all; Slurm's word on a job that it knows counts before the other files, but for
    progress that is younger than that word.

    Args:
        files: What the run's files say.
        view: What Slurm says; None if it was not asked, or does not answer.
        now: Unix time.
        asked: Unix time of Slurm's answer.
        ended: Unix time of the answer that first said that the job is over.
    """
    if files.result:
        return Derived("done")
    fresh = files.progress is not None and now - files.progress.updated < REMOTE_SILENCE
    if view is None:
        return Derived(_without_slurm(files, fresh))
    revived = files.failure is not None
    if view.live:
        younger = files.progress is not None and fresh and files.progress.updated > asked
        return Derived("queued" if view.waiting and not younger else "running", revived=revived)
    return _after(files, view, fresh, None if ended is None else now - ended)


def _after(files: Files, view: JobView, fresh: bool, since: float | None) -> Derived:
    if files.failure is not None:
        return Derived("failed")
    if not view.ended and fresh:  # forgotten by Slurm, but evidently at work
        return Derived("running")
    good = view.state == "COMPLETED" and not files.exit_code
    if good and since is not None and since < FILES_LATE:
        return Derived("running")
    return Derived("failed", over=True)


def _without_slurm(files: Files, fresh: bool) -> State:
    if files.failure is not None:
        return "failed"
    if files.exit_code is not None and not (files.exit_code == 0 and files.checkpoint):
        return "failed"
    return "running" if fresh else "queued"
