"""The state of a run according to its files; for a run in a queue, the queue's answer is needed, too."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scalestudy.store.launcher_process import REMOTE_SILENCE
from scalestudy.store.record_file import StoredRecord
from scalestudy.store.records import Failure, Progress, Result
from scalestudy.store.run_folder import RunFolder, first_damaged, is_at_work, remedy

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
        return cls.with_records(run, run.deciding_records())

    @classmethod
    def with_records(
        cls,
        run: RunFolder,
        records: Mapping[str, StoredRecord[Any]],
    ) -> "RunFiles":
        """Read the files of a run besides its deciding records, which have been read."""
        damage = first_damaged(records)
        if damage is not None:
            return cls(damage=f"{damage.why}. {remedy(run.path, damage)}")
        if records["result.json"].record is not None:
            return cls(result=True)
        # Read once for two answers: it may be replaced in between.
        progress = run.progress()
        in_queue = records["job.json"].record is not None
        owner = records["launcher.json"].record
        return cls(
            failure=run.failure(),
            progress=progress,
            exit_code=run.exit_code(),
            checkpoint=run.checkpoint.exists(),
            job=in_queue,
            alive=is_at_work(progress, owner, in_queue=in_queue),
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
        # A launcher that ends writes a failure: without one, it was killed.
        return "running" if files.alive else "failed"
    return _state_of_job(files, now)


def _state_of_job(files: RunFiles, now: float) -> State:
    """The state of a run in a queue that has left neither a result nor a failure."""
    if files.exit_code is not None:
        # A job that is put back into the queue ends with 0 and leaves a checkpoint.
        goes_on = files.exit_code == 0 and files.checkpoint
        if not goes_on:
            return "failed"
    if files.fresh(now):
        return "running"
    return "queued"


def how_it_failed(failure: Failure) -> State:
    """Whether the user cancelled the run ("cancelled") or not ("failed")."""
    if failure.cancelled or failure.job_state == "CANCELLED":
        return "cancelled"
    return "failed"


@dataclass(frozen=True)
class DecidingRun:
    """The run that determines the state of a point, with its files and, if it is done, its result."""

    run: RunFolder
    files: RunFiles
    result: Result | None = None


def read_deciding_run(runs: Sequence[RunFolder]) -> DecidingRun | None:
    """Read the run that determines the state of a point, from its runs, oldest first; None without runs.

    It is the newest finished run, else a running one, else the newest damaged one, else the newest. A file of
    it is read once: on a file system that nodes share, each read may take milliseconds, and the file may have
    been replaced before a second one.
    """
    unfinished = []
    for run in reversed(runs):
        records = run.deciding_records()
        damaged = first_damaged(records) is not None
        result = records["result.json"].record
        if result is not None and not damaged:
            return DecidingRun(run, RunFiles(result=True), result)
        unfinished.append((run, records, damaged))
    first_whole: DecidingRun | None = None
    first_damage: DecidingRun | None = None
    for run, records, damaged in unfinished:
        # A damaged run decides only where no other does: its files may say anything.
        if damaged and first_damage is not None:
            continue
        found = DecidingRun(run, RunFiles.with_records(run, records))
        if damaged:
            first_damage = found
        elif found.files.failure is None and found.files.alive:
            return found
        elif first_whole is None:
            first_whole = found
    return first_damage or first_whole


def state_of_runs(runs: Sequence[RunFolder]) -> State:
    """The state of a point from the files of its runs alone, without asking a queue."""
    found = read_deciding_run(runs)
    if found is None:
        return "missing"
    return state_of_files(found.files, now=time.time())
