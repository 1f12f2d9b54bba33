"""Whether everything a study has written is still as it was written. Nothing is mended or written."""

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scalestudy.conduct.verified import Kind, OnRead, Verified
from scalestudy.errors import UserError
from scalestudy.files import contents
from scalestudy.study.diagnosis import FOLDER, Diagnosis
from scalestudy.study.estimate_record import ESTIMATE_FILE, EstimateRecord
from scalestudy.study.gallery_record import GalleryRecord
from scalestudy.study.model_record import BestRecord, ModelRecord
from scalestudy.study.point import Point
from scalestudy.study.reading import Found, Word, read_record
from scalestudy.study.records import Cause, Failure, Progress, RankRecord, StepRecord
from scalestudy.study.run_folder import DECIDING, NAME, RunFolder
from scalestudy.study.store import StudyRecord

RECORDS: dict[str, type[Any]] = {
    **DECIDING,
    "failure.json": Failure,
    "progress.json": Progress,
    "model.json": ModelRecord,
    "best.json": BestRecord,
    "gallery.json": GalleryRecord,
}


def verify(folder: Path, on_read: OnRead = lambda name, size: None) -> list[Verified]:
    """Read all records of a study, their checksums, epochs, models, and the data that its points name.

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
    from scalestudy.conduct.verify_data import verify_data

    found = [*_study(folder, study), *_estimate(folder), *_diagnoses(folder)]
    points: list[Point] = []
    for path in sorted((folder / "points").glob("*/run-*")):
        if NAME.fullmatch(path.name):
            run = RunFolder(path)
            on_read(path.relative_to(folder).as_posix(), 0)
            found += _run(run, folder, on_read)
            point = read_record(path / "point.json", Point).record
            points += [point] if point else []
    return found + list(verify_data(points, on_read))


def bytes_to_read(folder: Path) -> int:
    """Bytes of the arrays and models that `verify` will read, for its progress."""
    files = {file for path in (folder / "points").glob("*/run-*") for file in _large(RunFolder(path))}
    return sum(file.stat().st_size for file in files if file.is_file())


def _large(run: RunFolder) -> Iterator[Path]:
    yield from (run.model, run.best, run.checkpoint)
    point = read_record(run.path / "point.json", Point).record
    if point is not None and point.files is not None:
        yield from (file for form in ("*.npy", "*.bin") for file in Path(point.files.prepared).glob(form))


def _study(folder: Path, study: Found[StudyRecord]) -> Iterator[Verified]:
    yield Verified("study.json", "study", study.word, study.why or _none(study.word))
    try:
        text = contents(folder / "study.toml")
    except OSError as error:
        word: Word = "missing" if isinstance(error, FileNotFoundError) else "corrupt"
        yield Verified("study.toml", "study", word, f"study.toml: {error.strerror}")
        return
    recorded = study.record.study_text if study.record else ""
    if not recorded:
        yield Verified("study.toml", "study", "without checksum")
    elif recorded == hashlib.sha256(text).hexdigest():
        yield Verified("study.toml", "study", "sound")
    else:
        yield Verified("study.toml", "study", "corrupt", "it is not the text that study.json was made of")


def _estimate(folder: Path) -> Iterator[Verified]:
    found = read_record(folder / ESTIMATE_FILE, EstimateRecord)
    if found.word != "missing":
        yield Verified(ESTIMATE_FILE, "study", found.word, found.why)


def _diagnoses(folder: Path) -> Iterator[Verified]:
    for file in sorted((folder / FOLDER).glob("*/diagnosis.json")):
        found = read_record(file, Diagnosis)
        yield Verified(file.relative_to(folder).as_posix(), "record", found.word, found.why)


def _run(run: RunFolder, folder: Path, on_read: OnRead) -> Iterator[Verified]:
    def verified(name: str, kind: Kind, word: Word, why: str = "") -> Verified:
        return Verified((run.path / name).relative_to(folder).as_posix(), kind, word, why)

    kinds = RECORDS | {
        f"{folder}/{file.name}": kind
        for folder, kind in (("ranks", RankRecord), ("causes", Cause), ("steps", StepRecord))
        for file in sorted((run.path / folder).glob("*.json"))
    }
    read = {name: read_record(run.path / name, record_kind) for name, record_kind in kinds.items()}
    for name, record in read.items():
        if record.word != "missing":
            yield verified(name, "record", record.word, record.why)
        elif name == "point.json":
            yield verified(name, "record", "missing", _none("missing"))
    point, result = read["point.json"].record, read["result.json"].record
    if point is not None and result is not None:
        for name in (f"ranks/{rank}.json" for rank in range(point.processes)):
            if name not in kinds:
                yield verified(name, "record", "missing", "the run is done, and this rank has none")
    yield from _epochs(run, verified)
    models: dict[str, Kind] = {
        run.model.name: "model",
        run.best.name: "model",
        run.checkpoint.name: "checkpoint",
    }
    for name, kind in models.items():
        if (run.path / name).exists():
            why = _zip(run.path / name, on_read)
            yield verified(name, kind, "corrupt" if why else "sound", why)
        elif name == run.model.name and result is not None and not result.model_missing:
            yield verified(name, "model", "missing", "the run is done, and its model is not there")


def _epochs(run: RunFolder, verified: Callable[..., Verified]) -> Iterator[Verified]:
    lines, result = [found for _, found in run.found_epochs()], run.result()
    if not lines and result is None:
        return
    if lines and result is None and not _ended(run.path / "epochs.jsonl"):
        lines = lines[:-1]  # torn by a kill: a run that goes on drops it
    wrong = [found.why for found in lines if found.damaged]
    if not wrong and result is not None and len(lines) != result.epochs:
        wrong = [f"it holds {len(lines)} epochs, and the result counts {result.epochs}"]
    old = any(found.word == "without checksum" for found in lines)
    word: Word = (
        "corrupt" if wrong and lines else "missing" if wrong else "without checksum" if old else "sound"
    )
    yield verified("epochs.jsonl", "epochs", word, "; ".join(wrong[:3]))


def _ended(file: Path) -> bool:
    try:
        return contents(file).endswith(b"\n")
    except OSError:
        return True


def _zip(file: Path, on_read: OnRead) -> str:
    """What is wrong with an archive by its own checksums; "" if nothing is."""
    try:
        with zipfile.ZipFile(file) as archive:
            bad = archive.testzip()
    except (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
        return f"it is no whole archive: {error}"
    on_read(str(file), file.stat().st_size)
    return "" if bad is None else f"its part {bad} is not what its checksum says"


def _none(word: Word) -> str:
    return "no such file" if word == "missing" else ""
