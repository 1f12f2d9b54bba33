"""The state of a run as far as its files tell: all there is of a run of this machine, half of a job's."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from scalestudy.study.launcher_process import REMOTE_SILENCE
from scalestudy.study.records import Failure, Progress, Result
from scalestudy.study.run_folder import RunFolder, remedy

State = Literal["done", "failed", "cancelled", "running", "queued", "missing", "corrupt"]
"""The words for how a run stands; every command and report uses these and no others."""
ENDED = ("done", "failed", "cancelled", "corrupt")
"""States of which nothing moves any more."""
UNSUCCESSFUL = ("failed", "cancelled")
"""States of runs that have ended without a result, each with its reason."""


@dataclass(frozen=True)
class RunFiles:
    """What the files of a run say: each part None or false where there is none.

    `job` says whether it was given to a queue, `alive` whether the process that owns its workers still runs
    (of no meaning for a job), and `damage` which deciding record is corrupt, and what to do.
    """

    result: bool = False
    failure: Failure | None = None
    progress: Progress | None = None
    exit_code: int | None = None
    checkpoint: bool = False
    job: bool = True
    alive: bool = False
    damage: str = ""

    @classmethod
    def of(cls, run: RunFolder) -> "RunFiles":
        """Read them."""
        damage = run.damage()
        if damage is not None:
            return cls(damage=f"{damage.why}. {remedy(run.path)}")
        if run.result():
            return cls(result=True)
        return cls(
            False, run.failure(), run.progress(), run.exit_code(), run.checkpoint.exists(),
            run.job() is not None, run.alive(),
        )  # fmt: skip

    def fresh(self, now: float) -> bool:
        """Whether the progress is recent enough, at this Unix time, to be a sign of life."""
        return self.progress is not None and now - self.progress.updated < REMOTE_SILENCE


def state_of_files(files: RunFiles, *, now: float) -> State:
    """The state that the files alone show at this Unix time; a run whose launcher was killed has failed.

    A job that asks to be put back into the queue has written its exit code too, and a checkpoint.
    """
    if files.damage:
        return "corrupt"
    if files.result:
        return "done"
    if files.failure is not None:
        return how_it_failed(files.failure)
    if not files.job:
        return "running" if files.alive else "failed"
    if files.exit_code is not None and not (files.exit_code == 0 and files.checkpoint):
        return "failed"
    return "running" if files.fresh(now) else "queued"


def how_it_failed(failure: Failure) -> State:
    """Whether a person ended it (cancelled) or not (failed)."""
    return "cancelled" if failure.cancelled or failure.job_state == "CANCELLED" else "failed"


def finished_run(runs: Sequence[RunFolder]) -> tuple[RunFolder, Result] | None:
    """Of the runs of one point, oldest first, the newest finished one; None without any."""
    for run in reversed(runs):
        result = run.result()
        if result is not None and not run.damaged("point.json"):
            return run, result
    return None


def deciding_run(runs: Sequence[RunFolder]) -> RunFolder | None:
    """Of the runs of one point, oldest first, the one whose state is the point's.

    The newest finished one, else one at work, else the newest that cannot be judged, else the newest.
    """
    newest = list(reversed(runs))
    damaged = [run for run in newest if run.damage()]
    whole = [run for run in newest if run not in damaged]
    done = (run for run in whole if run.result())
    at_work = (run for run in whole if not run.failure() and run.alive())
    return next(chain(done, at_work, damaged, newest), None)


def state_of_runs(runs: Sequence[RunFolder]) -> State:
    """The state of a point by the files of its runs alone; nobody else is asked."""
    run = deciding_run(runs)
    return "missing" if run is None else state_of_files(RunFiles.of(run), now=time.time())
