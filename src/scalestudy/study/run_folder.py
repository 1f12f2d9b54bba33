"""The folder of one run: what its workers write, and what everything downstream reads."""

import json
import shutil
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from scalestudy.files import append_line, replacing, write_atomically
from scalestudy.study.owner import Owner, is_alive, is_recent, this_process
from scalestudy.study.point import Point
from scalestudy.study.records import (
    EpochRecord,
    Failure,
    JobRecord,
    Progress,
    RankRecord,
    Record,
    Result,
    Sign,
    Silence,
)

AnyRecord = TypeVar("AnyRecord", bound=Record)


class RunFolder:
    """One execution of a point: `points/NAME/run-K`.

    Readers return None (or nothing) for a file that is missing or not whole; state is derived from
    files only.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

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

    def point(self) -> Point:
        """The resolved point that runs here."""
        return Point.model_validate_json((self.path / "point.json").read_bytes())

    def result(self) -> Result | None:
        """The result; its presence means that the run is done."""
        return self._record("result.json", Result)

    def progress(self) -> Progress | None:
        """Where the run is."""
        return self._record("progress.json", Progress)

    def failure(self) -> Failure | None:
        """Why the run failed."""
        return self._record("failure.json", Failure)

    def owner(self) -> Owner | None:
        """The process that started the workers."""
        return self._record("owner.json", Owner)

    def job(self) -> JobRecord | None:
        """The job of a queue that the run was given to; None for a run of this machine."""
        return self._record("job.json", JobRecord)

    def exit_code(self) -> int | None:
        """The number that the job script wrote when the workers had ended."""
        try:
            return int((self.path / "exit").read_text())
        except (OSError, ValueError):
            return None

    def epochs(self) -> list[EpochRecord]:
        """Records of the epochs so far; a line torn by a kill is left out."""
        try:
            lines = (self.path / "epochs.jsonl").read_bytes().splitlines()
        except FileNotFoundError:
            return []
        records = []
        for line in lines:
            try:
                records.append(EpochRecord.model_validate_json(line))
            except ValidationError:
                continue
        return records

    def ranks(self) -> list[RankRecord]:
        """Environments of the ranks, by rank."""
        found = [
            self._record(f"ranks/{path.name}", RankRecord) for path in (self.path / "ranks").glob("*.json")
        ]
        return sorted((record for record in found if record), key=lambda record: record.rank)

    def signs(self) -> list[Sign]:
        """The last sign of life of each rank that gave one, by rank."""
        found = [
            self._record(f"signs/{path.name}", Sign) for path in (self.path / "signs").glob("[0-9]*.json")
        ]
        return sorted((sign for sign in found if sign), key=lambda sign: sign.rank)

    def silence(self) -> Silence | None:
        """Why a watchdog has ended the run."""
        return self._record("signs/silence.json", Silence)

    def log(self, rank: int) -> Path:
        """Log of a rank; its folder exists."""
        path = self.path / "logs" / f"rank-{rank}.log"
        path.parent.mkdir(exist_ok=True)
        return path

    @property
    def checkpoint(self) -> Path:
        """Where the run is kept while it is under way."""
        return self.path / "checkpoint.npz"

    @property
    def stop(self) -> Path:
        """The file whose presence asks the run to checkpoint and to leave."""
        return self.path / "stop"

    def alive(self) -> bool:
        """Whether the process that owns the workers still runs; of a job, whether its progress is fresh."""
        progress = self.progress()
        if self.job() is not None:
            return progress is not None and is_recent(progress.updated)
        owner = self.owner()
        if owner is None:
            return False
        return is_alive(owner, progress.updated if progress else None)

    def write_result(self, result: Result) -> None:
        """Declare the run done."""
        self._write("result.json", result)

    def append_epoch(self, epoch: EpochRecord) -> None:
        """Add the record of a finished epoch."""
        append_line(self.path / "epochs.jsonl", epoch.model_dump_json())

    def keep_epochs(self, last: int) -> list[EpochRecord]:
        """Drop the records of epochs after `last`, and return those that stay."""
        kept = [record for record in self.epochs() if record.epoch <= last]
        if kept or (self.path / "epochs.jsonl").exists():
            lines = "".join(record.model_dump_json() + "\n" for record in kept)
            write_atomically(self.path / "epochs.jsonl", lines)
        return kept

    def write_progress(self, progress: Progress) -> None:
        """Replace the progress."""
        self._write("progress.json", progress)

    def write_failure(self, failure: Failure) -> None:
        """Declare the run failed."""
        self._write("failure.json", failure)

    def write_job(self, job: JobRecord) -> None:
        """Name the job that the run was given to."""
        self._write("job.json", job)

    def write_rank(self, rank: RankRecord) -> None:
        """Record the environment of a rank."""
        (self.path / "ranks").mkdir(exist_ok=True)
        self._write(f"ranks/{rank.rank}.json", rank)

    def write_sign(self, sign: Sign) -> None:
        """Replace the sign of life of a rank. It is not waited for until it is on the disk."""
        path = self.path / "signs" / f"{sign.rank}.json"
        path.parent.mkdir(exist_ok=True)
        with replacing(path, path.with_suffix(".new")) as file:
            file.write(sign.model_dump_json().encode() + b"\n")

    def write_silence(self, silence: Silence) -> None:
        """Say why a watchdog ends the run."""
        (self.path / "signs").mkdir(exist_ok=True)
        self._write("signs/silence.json", silence)

    def forget_signs(self) -> None:
        """Remove the signs of processes that have ended, before others begin."""
        shutil.rmtree(self.path / "signs", ignore_errors=True)

    def write_owner(self, owner: Owner | None = None) -> None:
        """Name the process that owns the workers: this one, unless another is given."""
        self._write("owner.json", owner or this_process())

    def _write(self, name: str, record: Record) -> None:
        write_atomically(self.path / name, record.model_dump_json(indent=1))

    def _record(self, name: str, kind: type[AnyRecord]) -> AnyRecord | None:
        try:
            return kind.model_validate_json((self.path / name).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None


def write_point(path: Path, point: Point) -> None:
    """Write the point of a run folder."""
    write_atomically(path, json.dumps(point.model_dump(mode="json"), indent=1))
