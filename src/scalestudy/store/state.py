"""The state of a run according to its files; for a run in a queue, the queue's answer is needed, too."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from scalestudy.store.launcher_process import REMOTE_SILENCE
from scalestudy.store.records import Failure, Progress, Result
from scalestudy.store.run_folder import RunFolder, remedy

State = Literal[
    "done", "failed", "cancelled", "running", "queued", "missing", "corrupt"
]
"""The states of a run; every command and report uses these words."""
ENDED = ("done", "failed", "cancelled", "corrupt")
"""States in which a run no longer changes."""
UNSUCCESSFUL = ("failed", "cancelled")
"""States of runs that ended without a result, each with a reason."""


@dataclass(frozen=True)
class RunFiles:
    """The content of a run's files; each part is None or false if it is missing.

    `job` says whether the run was submitted to a queue, `alive` whether the process that owns its workers is
    running (meaningless for a job), and `damage` which deciding record is corrupt, with a remedy.
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
        """Read the files of a run."""
        damage = run.damage()
        if damage is not None:
            return cls(damage=f"{damage.why}. {remedy(run.path, damage)}")
        if run.result():
            return cls(result=True)
        return cls(
            False,
            run.failure(),
            run.progress(),
            run.exit_code(),
            run.checkpoint.exists(),
            run.job() is not None,
            run.alive(),
        )

    def fresh(self, now: float) -> bool:
        """Whether the progress is recent, at this Unix time, and so a sign of life."""
        if self.progress is None:
            return False
        return now - self.progress.updated < REMOTE_SILENCE


def state_of_files(files: RunFiles, *, now: float) -> State:
    """The state according to the files at this Unix time; a run whose launcher was killed has failed.

    A job that requests to be requeued has also written an exit code, and a checkpoint.
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
    """Whether the user cancelled the run ("cancelled") or not ("failed")."""
    if failure.cancelled or failure.job_state == "CANCELLED":
        return "cancelled"
    return "failed"


def finished_run(runs: Sequence[RunFolder]) -> tuple[RunFolder, Result] | None:
    """The newest finished run of one point, from its runs, oldest first; None if there is none."""
    for run in reversed(runs):
        result = run.result()
        if result is not None and not run.damaged("point.json"):
            return run, result
    return None


def deciding_run(runs: Sequence[RunFolder]) -> RunFolder | None:
    """The run that determines the state of a point, from its runs, oldest first.

    It is the newest finished run, else a running one, else the newest damaged one, else the newest.
    """
    newest = list(reversed(runs))
    damaged = [run for run in newest if run.damage()]
    # A damaged run decides only where no other does: its files may say anything.
    whole = [run for run in newest if run not in damaged]
    done = (run for run in whole if run.result())
    at_work = (run for run in whole if not run.failure() and run.alive())
    return next(chain(done, at_work, damaged, newest), None)


def state_of_runs(runs: Sequence[RunFolder]) -> State:
    """The state of a point from the files of its runs alone, without asking a queue."""
    run = deciding_run(runs)
    if run is None:
        return "missing"
    return state_of_files(RunFiles.of(run), now=time.time())
