"""Whether everything a study has written is still as it was written. Nothing is written."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scalestudy.data.splits.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.study.gallery_record import GalleryRecord
from scalestudy.study.model_record import BestRecord, ModelRecord
from scalestudy.study.point import Point
from scalestudy.study.record_file import CHECKSUMS, Word, file_checksum, read_checksums, read_record
from scalestudy.study.records import Cause, Failure, Progress, RankRecord, Record, StepRecord
from scalestudy.study.run_folder import DECIDING, EPOCHS, NAME, RunFolder
from scalestudy.study.store import StudyRecord
from scalestudy.util.errors import UserError
from scalestudy.util.files import contents

Kind = Literal["study", "record", "epochs", "model", "data", "split"]
OnRead = Callable[[str], object]
"""Called with the name of a file that is read now."""
RECORDS: dict[str, type[Any]] = {
    **DECIDING,
    "failure.json": Failure,
    "progress.json": Progress,
    "model.json": ModelRecord,
    "best.json": BestRecord,
    "gallery.json": GalleryRecord,
}
RANK_RECORDS: dict[str, type[Any]] = {"ranks": RankRecord, "causes": Cause, "steps": StepRecord}
KINDS: dict[str, Kind] = {EPOCHS: "epochs", "model.keras": "model", "best.keras": "model"}
"""Kinds of a run's files that are no records."""


@dataclass(frozen=True)
class Verified:
    """The state of a file.

    Attributes:
        path: Relative to the study's folder where it lies in it, absolute otherwise.
        kind: What it is.
        word: "sound", "missing" or "corrupt".
        why: What is wrong; "" for what is sound.
        needed: Whether the study's results lose something with it. Data can be prepared anew.
    """

    path: str
    kind: Kind
    word: Word
    why: str = ""
    needed: bool = True

    @property
    def sound(self) -> bool:
        """Whether it can be used, or is not missed."""
        return self.word == "sound" or (self.word == "missing" and not self.needed)


def verify(folder: Path, on_read: OnRead = lambda name: None) -> list[Verified]:
    """Read all files of a study that have a checksum or a schema, and the data that its points name.

    Args:
        folder: The results folder. Its study.json may itself be damaged: the runs are read all the same.
        on_read: Is told what is read; data sets take their time.

    Raises:
        UserError: If there is no such folder, or nothing of a study in it.
    """
    study = read_record(folder / "study.json", StudyRecord)
    if study.word == "missing" and not (folder / "points").is_dir():
        raise UserError(
            "the results folder of a study",
            f"{folder}, which " + ("has no study.json" if folder.is_dir() else "is no folder"),
            "Name the folder that `scalestudy run` made (studies/NAME beside the study file).",
        )
    files = [Verified("study.json", "study", study.word, study.why), *_study_text(folder, study.record)]
    for file in sorted([*folder.glob("*.json"), *folder.glob("diagnosis/*/diagnosis.json")]):
        if file.name != "study.json":  # of features, which alone know what is in it
            files += _optional(folder, file, Record, "record")
    files += _no_folders(folder, study.record)
    points: list[Point] = []
    for run in _runs(folder):
        on_read(run.path.relative_to(folder).as_posix())
        files += _run(run, folder, on_read)
        point = read_record(run.path / "point.json", Point).record
        points += [point] if point else []
    return files + list(_data(points, on_read))


def _runs(folder: Path) -> Iterator[RunFolder]:
    for path in sorted((folder / "points").glob("*/run-*")):
        if NAME.fullmatch(path.name):
            yield RunFolder(path)


def _study_text(folder: Path, study: StudyRecord | None) -> Iterator[Verified]:
    try:
        text = contents(folder / "study.toml")
    except FileNotFoundError:
        yield Verified("study.toml", "study", "missing")
    except OSError as error:
        yield Verified("study.toml", "study", "corrupt", f"study.toml: {error.strerror}")
    else:
        if study is None or study.study_text == hashlib.sha256(text).hexdigest():
            yield Verified("study.toml", "study", "sound")
        else:
            why = "it is not the text that study.json was made of"
            yield Verified("study.toml", "study", "corrupt", why)


def _optional(folder: Path, file: Path, kind: type[Any], noun: Kind) -> Iterator[Verified]:
    record = read_record(file, kind)
    if record.word != "missing":
        yield Verified(file.relative_to(folder).as_posix(), noun, record.word, record.why)


def _no_folders(folder: Path, study: StudyRecord | None) -> Iterator[Verified]:
    """What lies in the place of the folders of points: files, or links that lead nowhere."""
    paths = [folder / "points"]
    if paths[0].is_dir() and study is not None:
        paths += [paths[0] / point.name for point in study.points]
    for path in paths:
        if (path.is_symlink() or path.exists()) and not path.is_dir():
            yield Verified(path.relative_to(folder).as_posix(), "record", "corrupt", "it is no folder")


def _run(run: RunFolder, folder: Path, on_read: OnRead) -> Iterator[Verified]:
    def verified(name: str, word: Word, why: str = "") -> Verified:
        path = (run.path / name).relative_to(folder).as_posix()
        return Verified(path, KINDS.get(name, "record"), word, why)

    try:
        checksums = read_checksums(run.path)
    except FileNotFoundError:
        checksums = {}
        if run.result() is not None:
            yield verified(CHECKSUMS, "missing", "the run is done, and its checksums are not there")
    except (OSError, ValueError) as error:
        checksums = {}
        yield verified(CHECKSUMS, "corrupt", f"{CHECKSUMS}: {error}")
    for name, checksum in checksums.items():
        why = _wrong(run.path / name, checksum, on_read)
        word: Word = "sound" if not why else "corrupt" if (run.path / name).exists() else "missing"
        yield verified(name, word, why)
    records = RECORDS | {
        f"{part}/{file.name}": kind
        for part, kind in RANK_RECORDS.items()
        for file in sorted((run.path / part).glob("*.json"))
    }
    for name, kind in records.items():
        if name not in checksums:
            record = read_record(run.path / name, kind)
            if record.word != "missing" or name == "point.json":
                yield verified(name, record.word, record.why)
    if EPOCHS not in checksums and (epochs := run.found_epochs()):
        wrong = [found.why for found in epochs if found.damaged]
        yield verified(EPOCHS, "corrupt" if wrong else "sound", "; ".join(wrong[:3]))


def _wrong(file: Path, checksum: str, on_read: OnRead) -> str:
    """What is wrong with a file that has a checksum; "" if nothing is."""
    on_read(file.name)
    try:
        now = file_checksum(file)
    except OSError as error:
        return f"{file.name}: {error.strerror}"
    return "" if now == checksum else f"{file.name}: its SHA-256 is {now[:12]}…, not {checksum[:12]}…"


def _data(points: list[Point], on_read: OnRead) -> Iterator[Verified]:
    """Each data set and split once: its description, its arrays, its rows."""
    files = [point.files for point in points if point.files is not None]
    for folder in dict.fromkeys(names.prepared for names in files):
        try:
            prepared = Prepared.open(folder)
        except UserError as error:
            yield from _unopened(Path(folder), error, on_read)
            continue
        yield Verified(f"{folder}/meta.json", "data", "sound")
        for name, checksum in prepared.arrays.items():
            why = _wrong(prepared.path / name, checksum, on_read)
            yield Verified(f"{folder}/{name}", "data", "corrupt" if why else "sound", why)
    for split in dict.fromkeys(names.split for names in files):
        try:
            Split.load(split)
        except UserError as error:
            yield _unusable(Path(split), "split", error)
        else:
            yield Verified(split, "split", "sound")


def _unopened(folder: Path, error: UserError, on_read: OnRead) -> Iterator[Verified]:
    """The arrays of a set that cannot be opened which are not as recorded; the set itself if none is."""
    try:
        recorded = json.loads((folder / "meta.json").read_bytes())["arrays"]
        wrong = [
            folder / name for name, checksum in recorded.items() if _wrong(folder / name, checksum, on_read)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        wrong = []
    for path in wrong or [folder]:
        yield _unusable(path, "data", error)


def _unusable(path: Path, kind: Kind, error: UserError) -> Verified:
    return Verified(str(path), kind, "corrupt" if path.exists() else "missing", error.received, needed=False)
