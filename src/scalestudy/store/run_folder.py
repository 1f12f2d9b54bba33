"""The folder of one run: the files that its workers write and other modules read."""

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from scalestudy.config.point import Point
from scalestudy.plugins.engines import DEFAULT, engine_traits
from scalestudy.store.launcher_process import (
    LauncherProcess,
    is_alive,
    is_recent,
    this_process,
)
from scalestudy.store.model_record import BestRecord, GalleryRecord, ModelRecord
from scalestudy.store.record_file import (
    CHECKSUMS,
    StoredRecord,
    file_checksum,
    parse_record,
    read_checked_record,
    read_checksums,
    read_record,
    write_checksums,
    write_record,
)
from scalestudy.store.records import (
    Allocation,
    Allocations,
    Cause,
    Disturbance,
    EpochRecord,
    Failure,
    Hang,
    JobRecord,
    Progress,
    RankRecord,
    Record,
    Result,
    Sign,
    Stopped,
)
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.files import (
    append_line,
    contents,
    make_inside,
    touch,
    write_atomically,
)

AnyRecord = TypeVar("AnyRecord", bound=Record)
RankedRecord = TypeVar("RankedRecord", RankRecord, Cause, Sign)
NAME = re.compile(r"run-[1-9][0-9]{0,8}", re.ASCII)
"""Names of run folders."""
EPOCHS = "epochs.jsonl"
RANKS = "ranks.jsonl"
GALLERY = "gallery.json"
FINISHED = (
    "result.json",
    "point.json",
    EPOCHS,
    RANKS,
    GALLERY,
    "model.json",
    "model.keras",
    "model.pt",
    "best.json",
    "best.keras",
    "best.pt",
)
"""Files that do not change after a run has finished."""
OF_NEWER = "Open it with the version that wrote it, or a later one."
"""What to do about a record of a newer version."""
DECIDING: dict[str, type[BaseModel]] = {
    "result.json": Result,
    "point.json": Point,
    "job.json": JobRecord,
    "launcher.json": LauncherProcess,
}
"""Records that are needed to decide whether a run must be started again."""


def _deciding(folder: Path, name: str) -> StoredRecord[Any]:
    # Other records may change until the run is done.
    done = name == "result.json" or (folder / "result.json").exists()
    if done:
        return read_checked_record(folder / name, DECIDING[name])
    return read_record(folder / name, DECIDING[name])


# Readers and writers are made from a name and a model, since a run has some twenty small files that are all read
# and written in the same way.
def _reader(
    name: str, kind: type[AnyRecord]
) -> "Callable[[RunFolder], AnyRecord | None]":
    return lambda run: read_record(run.path / name, kind).record


def _rank_reader(
    folder: str, kind: type[RankedRecord]
) -> "Callable[[RunFolder], list[RankedRecord]]":
    """Return a reader of all ranks' records by rank: from the folder, and from the file they end in."""

    def read(run: "RunFolder") -> list[RankedRecord]:
        found: list[RankedRecord | None] = []
        # Both: a file of a rank that became visible only after the others were merged stays in its folder.
        with contextlib.suppress(OSError):
            name = f"{folder}.jsonl"
            for line in contents(run.path / name).splitlines():
                found.append(parse_record(line, kind, name).record)
        with contextlib.suppress(OSError):
            for name in os.listdir(run.path / folder):
                if name.endswith(".json") and name[0].isdigit():
                    found.append(read_record(run.path / folder / name, kind).record)
        by_rank = {record.rank: record for record in found if record}
        return [by_rank[rank] for rank in sorted(by_rank)]

    return read


def _writer(
    name: str, kind: type[AnyRecord]
) -> "Callable[[RunFolder, AnyRecord], None]":
    """`{rank}` in the name is replaced by the record's rank."""

    def write(run: "RunFolder", record: AnyRecord) -> None:
        run.write(name.format(rank=getattr(record, "rank", "")), record)

    return write


def first_damaged(
    records: Mapping[str, StoredRecord[Any]],
) -> StoredRecord[Any] | None:
    """The first of these records that exists but cannot be used; None if there is none."""
    for stored in records.values():
        if stored.damaged:
            return stored
    return None


def is_at_work(
    progress: Progress | None,
    process: LauncherProcess | None,
    *,
    in_queue: bool,
) -> bool:
    """Whether the process that owns the workers is running; for a job, whether its progress is recent."""
    updated = progress.updated if progress else None
    if in_queue:
        return updated is not None and is_recent(updated)
    return process is not None and is_alive(process, updated)


class RunFolder:
    """One execution of a point: `points/NAME/run-K`.

    Readers return None (or nothing) for a file that is missing or cannot be used. `damage` returns the record
    that prevents the run from being judged. State is derived from files only.

    Args:
        path: The folder.
        submission: Submission of the job that writes, if a queue started it. If the folder is removed or
            given to another job, writers raise RunError.
    """

    allocations = _reader("allocations.json", Allocations)
    """What its jobs held; None for a run on this machine."""
    progress = _reader("progress.json", Progress)
    launcher_process = _reader("launcher.json", LauncherProcess)
    """The process that started the workers."""
    disturbance = _reader("disturbance.json", Disturbance)
    """What other programs used of the run's cores; None if it was little."""
    hang = _reader("signs/hang.json", Hang)
    """Why a watchdog stopped the run."""
    stopped = _reader("stopped.json", Stopped)
    """Where the run stopped on request, at its checkpoint; None if it did not."""
    model_record = _reader("model.json", ModelRecord)
    """Record of the run's models; None before the run has begun."""
    best_record = _reader("best.json", BestRecord)
    """Epoch of `best`; None if no best model is kept."""
    gallery_record = _reader(GALLERY, GalleryRecord)
    causes = _rank_reader("causes", Cause)
    """How ranks ended before their work was done."""
    ranks = _rank_reader("ranks", RankRecord)
    signs = _rank_reader("signs", Sign)
    write_result = _writer("result.json", Result)
    _write_failure = _writer("failure.json", Failure)
    write_disturbance = _writer("disturbance.json", Disturbance)
    write_hang = _writer("signs/hang.json", Hang)
    write_job = _writer("job.json", JobRecord)
    write_stopped = _writer("stopped.json", Stopped)
    write_model_record = _writer("model.json", ModelRecord)
    write_best_record = _writer("best.json", BestRecord)
    write_cause = _writer("causes/{rank}.json", Cause)
    write_rank = _writer("ranks/{rank}.json", RankRecord)

    def __init__(self, path: str | Path, submission: str = "") -> None:
        self.path = Path(path)
        self._submission = submission

    @property
    def in_job(self) -> bool:
        """Whether this process belongs to a queue's job, which writes here less often."""
        return bool(self._submission)

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunFolder) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def number(self) -> int:
        """K of `run-K`."""
        return int(self.path.name.rpartition("-")[2])

    def result(self) -> Result | None:
        """Its presence means that the run is done. One that differs from its checksum cannot be used."""
        return _deciding(self.path, "result.json").record

    def point(self) -> Point:
        """The resolved point of this run; raises UserError if its file is missing or corrupt."""
        stored = _deciding(self.path, "point.json")
        if stored.record is None:
            expected = f"the point of a run, in {self.path / 'point.json'}"
            raise UserError(
                expected,
                stored.why or "no such file",
                remedy(self.path, stored),
            )
        point: Point = stored.record
        return point

    def failure(self) -> Failure | None:
        """Why the run failed; if the record is damaged, a failure that says so."""
        stored = read_record(self.path / "failure.json", Failure)
        if stored.damaged:
            reason = f"it failed, but its record is lost: {stored.why}"
            return Failure(
                rank=None,
                exit_code=None,
                reason=reason,
            )
        return stored.record

    def job(self) -> JobRecord | None:
        """The queue's job of the run; None for a run on this machine.

        If a job has begun here, the id is that job's: the file `began` holds its submission and its id.
        """
        record = read_record(self.path / "job.json", JobRecord).record
        if record is None or not record.submission:
            return record
        submission, _, job = self._text("began").partition(" ")
        # Of an earlier submission: a run that continues keeps its folder.
        if submission != record.submission or job in ("", "none"):
            return record
        # The queue may have started a job whose submission it never answered.
        return record.model_copy(update={"job": job})

    def refuse_other_job(self) -> None:
        """Raise RunError if this folder does not belong to the job that writes."""
        # A run on this machine is protected by the lock of its study.
        if not self._submission:
            return
        record = read_record(self.path / "job.json", JobRecord).record
        if record is None or record.submission != self._submission:
            owner = "gone"
            if record:
                owner = f"which belongs to job {record.job or record.submission}"
            raise RunError(
                f"the folder of this job's own run (submission {self._submission})",
                f"{self.path}, {owner}",
                "Nothing to do: this job has ended. Run `scalestudy cancel` before removing a study's"
                " folder.",
            )

    @property
    def has_begun(self) -> bool:
        """Whether a job of the latest submission has started to run."""
        return (self.path / "began").exists()

    def exit_code(self) -> int | None:
        """The exit code that the job script wrote after the workers had ended."""
        text = self._text("exit")
        if not re.fullmatch(r"-?[0-9]{1,9}", text):
            return None
        return int(text)

    def requeues(self) -> str:
        """How often its job has requeued itself, such as "3 of 10"; "" for never."""
        return self._text("requeues")

    def _text(self, name: str) -> str:
        """Text of a file that a job script writes; "" if it is missing."""
        try:
            return contents(self.path / name).decode().strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def deciding_records(self) -> dict[str, StoredRecord[Any]]:
        """The records that decide whether the run must be started again, by file, each read once.

        Once the run is done, only its result and its point decide.
        """
        result = _deciding(self.path, "result.json")
        names = list(DECIDING)
        if result.record is not None:
            names = ["result.json", "point.json"]
        records = {"result.json": result}
        for name in names:
            if name not in records:
                records[name] = _deciding(self.path, name)
        return records

    def damage(self) -> StoredRecord[Any] | None:
        """The first of the deciding records that exists but cannot be used; None if there is none."""
        return first_damaged(self.deciding_records())

    def altered(self, names: Iterable[str]) -> str:
        """Which of these files differ from their checksums, in words; "" if none, or without checksums.

        Missing files are not counted.
        """
        try:
            wrong = self.differing(names)
        except (OSError, ValueError) as error:
            return f"{CHECKSUMS}: {error}"
        if not wrong:
            return ""
        return f"{' and '.join(wrong)} with other checksums than in {CHECKSUMS}"

    def differing(self, names: Iterable[str]) -> list[str]:
        """Which of these files differ from their checksums; none before the run is done.

        Missing files are not counted.

        Raises:
            OSError: The checksums, or one of the files, cannot be read.
            ValueError: The checksums are damaged.
        """
        try:
            checksums = read_checksums(self.path)
        # They are written at the end of a run.
        except FileNotFoundError:
            return []
        differing = []
        for name in names:
            file = self.path / name
            if name not in checksums or not file.exists():
                continue
            if file_checksum(file) != checksums[name]:
                differing.append(name)
        return differing

    def epochs(self) -> list[EpochRecord]:
        """Records of the epochs so far, without lines that cannot be parsed."""
        return [line.record for line in self.found_epochs() if line.record]

    def found_epochs(self) -> list[StoredRecord[EpochRecord]]:
        """Every line of the epochs, sound or corrupt; an incomplete last line is left out."""
        try:
            # What follows the last end of a line is empty, or a line that is being written.
            lines = contents(self.path / EPOCHS).split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        except OSError as error:
            why = f"{EPOCHS} cannot be read: {error.strerror}"
            return [StoredRecord("corrupt", why=why)]
        found = []
        for number, line in enumerate(lines, start=1):
            if line:
                name = f"{EPOCHS}, line {number}"
                found.append(parse_record(line, EpochRecord, name))
        return found

    def log(self, rank: int) -> Path:
        """Log file of a rank; creates its folder."""
        path = self.path / "logs" / f"rank-{rank}.log"
        make_inside(path.parent)
        return path

    @property
    def checkpoint(self) -> Path:
        """Checkpoint of the run in progress."""
        return self.path / "checkpoint.npz"

    @cached_property
    def _model_suffixes(self) -> tuple[str, ...]:
        engine = DEFAULT
        point = read_record(self.path / "point.json", Point).record
        if point is not None:
            engine = point.engine
        return engine_traits(engine).model_suffixes

    @property
    def model(self) -> Path:
        """The trained model, in a format of its engine."""
        return self._present("model")

    @property
    def best(self) -> Path:
        """The model with the weights of the best epoch, if it is kept; see `best_record`."""
        return self._present("best")

    def _present(self, stem: str) -> Path:
        files = [self.path / f"{stem}{suffix}" for suffix in self._model_suffixes]
        for file in files:
            if file.exists():
                return file
        return files[0]

    @property
    def gallery(self) -> Path:
        """A few validation samples with their predictions."""
        return self.path / GALLERY

    def forget_best(self) -> None:
        """Remove the best model of a run that starts from the beginning."""
        for path in (self.path / "best.json", self.best):
            path.unlink(missing_ok=True)

    @property
    def stop(self) -> Path:
        """The file whose presence asks the run to write a checkpoint and stop."""
        return self.path / "stop"

    @property
    def cancelled(self) -> Path:
        """The file that marks a job as cancelled by the user, for queues that forget ended jobs."""
        return self.path / "cancelled"

    def ask_to_stop(self, why: str = "") -> None:
        """Ask the run to write a checkpoint and stop. A repeated request keeps time and reason of the first.

        Raises:
            RunError: The folder belongs to another job.
            OSError: The file cannot be created.
        """
        self.refuse_other_job()
        with contextlib.suppress(FileExistsError), self.stop.open("x") as file:
            file.write(why)

    def forget_stop(self) -> None:
        """Remove a request to stop and its answer, before processes are started that it does not concern."""
        self.stop.unlink(missing_ok=True)
        (self.path / "stopped.json").unlink(missing_ok=True)

    def alive(self) -> bool:
        """Whether the process that owns the workers is running; for a job, whether its progress is recent."""
        return is_at_work(
            self.progress(),
            self.launcher_process(),
            in_queue=self.job() is not None,
        )

    def write_checksums(self, result: Result | None = None) -> None:
        """Write the checksums of a finished run's files, and of a result that is written next.

        The records of ranks are merged first. The files must not change afterwards.
        """
        self.refuse_other_job()
        self.sync_epochs()
        # Before the checksums, which name the merged file.
        self._merge_ranks(self.ranks())
        names = [name for name in FINISHED if (self.path / name).exists()]
        coming = {}
        if result is not None:
            coming["result.json"] = result
        write_checksums(self.path, names, coming)

    def _merge_ranks(self, records: Sequence[RankRecord]) -> None:
        """Replace a file for each rank by one for all: clusters limit the number of files.

        A file that becomes visible only later, as on NFS, stays in its folder.
        """
        if records:
            # First the merged file: after a kill in between, records are read twice rather than lost.
            write_atomically(self.path / RANKS, _as_lines(records))
            for record in records:
                (self.path / "ranks" / f"{record.rank}.json").unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                (self.path / "ranks").rmdir()

    def append_epoch(self, epoch: EpochRecord) -> None:
        """Append the record of a finished epoch. `sync_epochs` makes it survive a power failure."""
        self.refuse_other_job()
        append_line(self.path / EPOCHS, epoch.model_dump_json())

    def sync_epochs(self) -> None:
        """Wait until the records of all epochs are on disk, before a checkpoint or a result needs them."""
        with (
            contextlib.suppress(FileNotFoundError),
            open(self.path / EPOCHS, "rb") as file,
        ):
            os.fsync(file.fileno())

    def keep_epochs(self, last: int) -> list[EpochRecord]:
        """Drop the records of epochs after `last`, and return the others.

        Raises:
            RunError: One of these is missing or corrupt: a result without it would be wrong.
        """
        kept = [record for record in self.epochs() if record.epoch <= last]
        if [record.epoch for record in kept] != list(range(1, last + 1)):
            wrong = [line.why for line in self.found_epochs() if line.damaged]
            raise RunError(
                f"records of all {last} epochs before the checkpoint, in {self.path}/epochs.jsonl",
                "; ".join(wrong) or f"those of {len(kept)}",
                "Run it again: it starts from the beginning.",
            )
        if kept or (self.path / EPOCHS).exists():
            self.refuse_other_job()
            write_atomically(self.path / EPOCHS, _as_lines(kept))
        return kept

    def write_progress(self, progress: Progress) -> None:
        """Replace the progress. A power failure may lose it; the next one follows within a second."""
        self.write("progress.json", progress, durable=False)

    def write_failure(self, failure: Failure) -> None:
        """Write why the run failed, and remove files that its processes left incomplete."""
        for half in (*self.path.glob(".*.half"), *self.path.glob(".half.*")):
            with contextlib.suppress(OSError):
                half.unlink()
        self._write_failure(failure)

    def withdraw_result(self, failure: Failure) -> None:
        """Set the result of a finished run aside, because of what another run has shown."""
        # The failure first: a run with neither would count as one whose launcher was killed.
        self.write_failure(failure)
        os.replace(self.path / "result.json", self.path / "withdrawn.json")

    def write_allocation(self, allocation: Allocation) -> None:
        """Add the allocation of a job, or replace it when the job ends."""
        known = (self.allocations() or Allocations()).jobs
        jobs = []
        for job in known:
            # A job that was put back into the queue begins again under the same id.
            if (job.job, job.began) != (allocation.job, allocation.began):
                jobs.append(job)
        self.write("allocations.json", Allocations(jobs=(*jobs, allocation)))

    def forget_cause(self, rank: int) -> None:
        """Remove the recorded cause of a rank, which is running (again)."""
        (self.path / "causes" / f"{rank}.json").unlink(missing_ok=True)

    def forget_causes(self) -> None:
        """Remove the recorded causes of all ranks, since the run continues."""
        for cause in self.causes():
            self.forget_cause(cause.rank)

    def write_sign(self, sign: Sign) -> None:
        """Replace the sign of life of a rank, without waiting until it is on disk."""
        path = self._signs / f"{sign.rank}.json"
        text = _as_lines([sign])
        try:
            write_atomically(path, text, durable=False)
        except FileNotFoundError:
            # `forget_signs` of another process has removed the folder.
            make_inside(path.parent)
            write_atomically(path, text, durable=False)

    @cached_property
    def _signs(self) -> Path:
        # Created once, not for each sign: on a shared file system, each call counts.
        return make_inside(self.path / "signs")

    def forget_signs(self) -> None:
        """Remove the signs of life of ended processes: when the run is done, or before new ones start."""
        shutil.rmtree(self.path / "signs", ignore_errors=True)

    def release(self) -> None:
        """Let the processes that serve rank 0 end; see `is_released`."""
        make_inside(self._released.parent)
        touch(self._released)

    def is_released(self) -> bool:
        """Whether rank 0 needs the processes that serve it no longer. `forget_signs` takes it back."""
        return self._released.exists()

    @property
    def _released(self) -> Path:
        return self.path / "signs" / "released"

    def write_launcher_process(self, process: LauncherProcess | None = None) -> None:
        """Record the process that owns the workers: by default this process."""
        self.write("launcher.json", process or this_process())

    def write(
        self,
        name: str,
        record: Record,
        *,
        durable: bool = True,
    ) -> None:
        """Write a record of this run; raises RunError if the folder belongs to another job."""
        self.refuse_other_job()
        if "/" in name:
            make_inside((self.path / name).parent)
        write_record(self.path / name, record, durable=durable)


def _as_lines(records: Iterable[Record]) -> str:
    return "".join(f"{record.model_dump_json()}\n" for record in records)


def write_point(path: Path, point: Point) -> None:
    """Write the point of a run folder."""
    write_record(path, point)


def remedy(run: Path, stored: StoredRecord[Any]) -> str:
    """What to do about a run's record that cannot be used."""
    if stored.newer:
        return OF_NEWER
    # STUDY/points/NAME/run-K; a folder that was copied may lie elsewhere.
    study = run
    if len(run.parents) > 2:
        study = run.parents[2]
    return (
        f"`scalestudy status --verify {shlex.quote(str(study))}` shows all that is wrong; restore {run} "
        "from a backup, or move it out of the study to repeat the run."
    )
