"""Verify that all files of a study are as they were written. Writes nothing."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalestudy.config.point import Point
from scalestudy.config.task_sources import FOLDER as SOURCES
from scalestudy.config.task_sources import digests, sources_of
from scalestudy.data.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.store.model_record import BestRecord, GalleryRecord, ModelRecord
from scalestudy.store.record_file import (
    CHECKSUMS,
    Word,
    file_checksum,
    read_checksums,
    read_record,
)
from scalestudy.store.records import Cause, Failure, Progress, RankRecord, Record
from scalestudy.store.run_folder import DECIDING, EPOCHS, NAME, RunFolder
from scalestudy.store.study_folder import StudyRecord
from scalestudy.util.errors import UserError

OnRead = Callable[[str], object]
"""Called with the name of the file or run folder that is read next."""
RECORDS: dict[str, type[Any]] = {
    **DECIDING,
    "failure.json": Failure,
    "progress.json": Progress,
    "model.json": ModelRecord,
    "best.json": BestRecord,
    "gallery.json": GalleryRecord,
}
RANK_RECORDS: dict[str, type[Any]] = {"ranks": RankRecord, "causes": Cause}


@dataclass(frozen=True)
class Verified:
    """The state of a file; `path` is relative to the study's folder if the file is inside it.

    `needed` tells whether results are lost without it; data, for example, can be prepared again.
    """

    path: str
    word: Word
    why: str = ""
    needed: bool = True

    @property
    def sound(self) -> bool:
        """Whether it can be used, or is missing but not needed."""
        if self.word == "missing":
            return not self.needed
        return self.word == "sound"


def verify(folder: Path, on_read: OnRead = lambda name: None) -> list[Verified]:
    """Read all files of a study that have a checksum or a schema, and the data that its points use.

    Args:
        folder: The results folder. Its runs are read even if study.json is damaged.
        on_read: Called with the name of what is read next; data sets take some time.

    Raises:
        UserError: The folder does not exist, or contains no study.
    """
    # Not by StudyFolder.open, which refuses a damaged study: its runs may be sound.
    study = read_record(folder / "study.json", StudyRecord)
    if study.word == "missing" and not (folder / "points").is_dir():
        lack = "is no folder"
        if folder.is_dir():
            lack = "has no study.json"
        raise UserError(
            "the results folder of a study",
            f"{folder}, which {lack}",
            "Name the folder that `scalestudy run` made (studies/NAME beside the study file).",
        )
    checksum: str | None = None
    known: list[Point] = []
    if study.record:
        checksum, known = study.record.study_text, study.record.points
    files = [
        Verified("study.json", study.word, study.why),
        _compare(folder / "study.toml", "study.toml", checksum, on_read),
    ]
    files += _other_records(folder)
    files += _sources(folder, known)
    files += _parents_of_runs(folder, known)
    points: list[Point] = []
    # Of all runs that are there, also of points that are no longer in the study.
    for path in sorted((folder / "points").glob("*/run-*")):
        if NAME.fullmatch(path.name):
            on_read(path.relative_to(folder).as_posix())
            files += _run(RunFolder(path), folder, on_read)
            of_run = read_record(path / "point.json", Point).record
            if of_run:
                points.append(of_run)
    return files + list(_data(points, on_read))


def _other_records(folder: Path) -> Iterator[Verified]:
    """Read the records beside study.json, such as a queue's answers and diagnoses."""
    files = [*folder.glob("*.json"), *folder.glob("diagnosis/*/diagnosis.json")]
    for file in sorted(files):
        if file.name == "study.json":
            continue
        # As any record: only the features know their models.
        record = read_record(file, Record)
        name = file.relative_to(folder).as_posix()
        yield Verified(name, record.word, record.why)


def _parents_of_runs(folder: Path, points: list[Point]) -> Iterator[Verified]:
    """Name what lies where the runs of these points should be."""
    parents = [folder / "points"]
    for point in points:
        parents.append(folder / "points" / point.name)
    for path in parents:
        # A link to nowhere is in the way, too.
        if os.path.lexists(path) and not path.is_dir():
            name = path.relative_to(folder).as_posix()
            yield Verified(name, "corrupt", "it is no folder")


def _sources(folder: Path, points: list[Point]) -> Iterator[Verified]:
    """Compare the copies of the task's sources with the digests of the points."""
    for name, digest in sources_of(points).items():
        copy, place = folder / SOURCES / name, f"{SOURCES}/{name}"
        if not copy.is_file():
            yield Verified(place, "missing", f"{copy.name}: No such file", needed=False)
        elif digests({name: copy}) == {name: digest}:
            yield Verified(place, "sound")
        else:
            why = f"{copy.name}: its code is not that of the runs"
            yield Verified(place, "corrupt", why, needed=False)


def _run(run: RunFolder, folder: Path, on_read: OnRead) -> Iterator[Verified]:
    inside = run.path.relative_to(folder)
    checksums: dict[str, str] = {}
    try:
        # Checksums are written after the result, so a run that failed before it has none.
        if not run.failure() or (run.path / "result.json").exists():
            checksums = read_checksums(run.path)
    except FileNotFoundError:
        if run.result() is not None:
            why = "the run is done, and its checksums are not there"
            yield Verified(f"{inside}/{CHECKSUMS}", "missing", why)
    except (OSError, ValueError) as error:
        yield Verified(f"{inside}/{CHECKSUMS}", "corrupt", f"{CHECKSUMS}: {error}")
    for name, checksum in checksums.items():
        yield _compare(run.path / name, f"{inside}/{name}", checksum, on_read)
    records = dict(RECORDS)
    for part, kind in RANK_RECORDS.items():
        for file in sorted((run.path / part).glob("*.json")):
            records[f"{part}/{file.name}"] = kind
    for name, model in records.items():
        # A checksum has told it already.
        if name in checksums:
            continue
        record = read_record(run.path / name, model)
        # Every run has its point; the others depend on how far it came.
        if record.word != "missing" or name == "point.json":
            yield Verified(f"{inside}/{name}", record.word, record.why)
    if EPOCHS in checksums:
        return
    epochs = run.found_epochs()
    if epochs:
        wrong = [line.why for line in epochs if line.damaged]
        word: Word = "corrupt" if wrong else "sound"
        yield Verified(f"{inside}/{EPOCHS}", word, "; ".join(wrong[:3]))


def _compare(
    file: Path,
    name: str,
    checksum: str | None,
    on_read: OnRead,
) -> Verified:
    """Compare a file with its checksum; None accepts any content."""
    # Before, since a data set may take minutes.
    on_read(file.name)
    try:
        now = file_checksum(file)
    except OSError as error:
        word: Word = "corrupt" if file.exists() else "missing"
        return Verified(name, word, f"{file.name}: {error.strerror}")
    if checksum in (None, now):
        return Verified(name, "sound")
    why = f"{file.name}: its SHA-256 is {now[:12]}…, not {str(checksum)[:12]}…"
    return Verified(name, "corrupt", why)


def _data(points: list[Point], on_read: OnRead) -> Iterator[Verified]:
    """Check each data set and split once: its description, its arrays, its rows."""
    folders: dict[str, None] = {}
    splits: dict[str, None] = {}
    for point in points:
        if point.files is not None:
            folders[point.files.prepared] = None
            splits[point.files.split] = None
    for folder in folders:
        try:
            prepared = Prepared.open(folder)
        except UserError as error:
            yield _unusable(folder, error)
            continue
        yield Verified(f"{folder}/meta.json", "sound")
        for name, checksum in prepared.arrays.items():
            yield _compare(prepared.path / name, f"{folder}/{name}", checksum, on_read)
    for split in splits:
        try:
            Split.load(split)
        except UserError as error:
            yield _unusable(split, error)
        else:
            yield Verified(split, "sound")


def _unusable(path: str, error: UserError) -> Verified:
    word: Word = "corrupt" if Path(path).exists() else "missing"
    return Verified(path, word, error.received, needed=False)
