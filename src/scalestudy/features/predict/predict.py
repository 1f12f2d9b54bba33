"""Predictions of a trained model for images, from what was named to the files of the results."""

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.app.listener import Listener
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.features.predict.items import Item
    from scalestudy.features.predict.job import Job
    from scalestudy.study.model_record import ModelRecord

MARK = "predictions.json"
"""By this file a folder is known as one that predictions were written to."""
FORMATS = ("csv", "jsonl")
PROBABILITIES = ("none", "npy", "tiff")


@dataclass(frozen=True)
class Wanted:
    """What is to be predicted, and how it is written.

    Attributes:
        images: Files, folders, or one source of data (an .npz file, "digits").
        out: Folder to write to.
        overlay: Also the masks laid over their images.
        probabilities: Also the probability of each class: "none", "npy" or "tiff".
        format: Of the table: "csv" or "jsonl".
        workers: Processes.
        device: "auto", "cpu" or "gpu".
        force: Whether `out` may hold other things.
    """

    images: tuple[str, ...]
    out: Path
    overlay: bool = False
    probabilities: str = "none"
    format: str = "csv"
    workers: int = 1
    device: str = "auto"
    force: bool = False


@dataclass(frozen=True)
class Predicted:
    """What was done.

    Attributes:
        table: The table's file.
        images: Images that were predicted.
        skipped: Images that were not, and why.
        told: What was done to images, and to how many.
        classes: Of class tasks: how many images were taken for each class.
    """

    table: Path
    images: int
    skipped: tuple[tuple[str, str], ...] = ()
    told: dict[str, int] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)


def plan(found: FoundModel, wanted: Wanted, listener: Listener) -> "Job":
    """What predicting would do; nothing is computed or written (a source of data is prepared).

    Raises:
        UserError: If images, options or the folder to write to are not right.
    """
    from scalestudy.features.predict.job import ItemRecord, Job
    from scalestudy.features.predict.start import device_for

    _refuse_options(found.record, wanted)
    items, prepared = _items(found.record, wanted, listener)
    workers = min(wanted.workers, len(items))
    _refuse_out(wanted, items)
    return Job.model_validate({
        "action": "predict", "model": str(found.path.absolute()), "record": found.record, "size": workers,
        "device": device_for(wanted.device, workers), "out": str(wanted.out.absolute()),
        "items": [ItemRecord.model_validate(vars(each)) for each in items],
        "overlay": wanted.overlay, "probabilities": wanted.probabilities, "prepared": prepared,
    })  # fmt: skip


def predict(found: FoundModel, wanted: Wanted, listener: Listener) -> Predicted:
    """Predict, and write masks or classes with their table.

    Images that cannot be read are left out, and named at the end.

    Raises:
        UserError: Before anything is written, if something is not right.
        RunError: If a process failed.
    """
    from scalestudy.features.predict.start import computed

    job = plan(found, wanted, listener)
    _begin(wanted.out, found, wanted)
    with (
        listener.computing("Predicting", len(job.items)) as on_progress,
        computed(job, _lines, on_progress) as (folder, _),
    ):
        lines = sorted(_read(folder), key=lambda line: int(line["index"]))
    return _finish(job, wanted, found, lines)


def _refuse_options(record: "ModelRecord", wanted: Wanted) -> None:
    checks: list[tuple[str, str, Sequence[str]]] = [
        ("--format", wanted.format, FORMATS), ("--probabilities", wanted.probabilities, PROBABILITIES),
    ]  # fmt: skip
    for option, value, known in checks:
        if value not in known:
            raise UserError(f"{option} {', '.join(known)}", repr(value), "Choose one of these.")
    if record.kind not in ("masks", "classes"):
        raise UserError(
            "a model of images with masks or classes",
            f"one of {record.kind}",
            "Export it, and use it in a program of your own.",
        )
    if record.kind == "classes" and (wanted.overlay or wanted.probabilities != "none"):
        option = "--overlay" if wanted.overlay else "--probabilities"
        raise UserError(
            f"{option} for a model that gives masks",
            "one that gives a class for each image",
            f"Leave {option} out: the table holds the probability of each class.",
        )
    if wanted.workers < 1:
        raise UserError("at least one worker", f"{wanted.workers}", "Correct --workers.")


def _items(record: "ModelRecord", wanted: Wanted, listener: Listener) -> "tuple[list[Item], str]":
    """What is predicted; and the folder of the prepared set that it is in, or ""."""
    from scalestudy.data.sources.files import several
    from scalestudy.data.sources.registry import named_source
    from scalestudy.features.predict.items import files_of, rows_of

    sources = [each for each in wanted.images if _is_source(each)]
    if not sources:
        items, left = files_of([Path(each) for each in _globbed(wanted.images)])
        if left:
            listener.note(f"Masks are not predicted: {several([str(each) for each in left])} left out.")
        return items, ""
    if len(wanted.images) > 1:
        raise UserError(
            "files and folders of images, or one source of data alone",
            f"{sources[0]} among {len(wanted.images)}",
            "Predict it in a call of its own.",
        )
    from scalestudy.features.predict.other_data import prepared_like

    name = sources[0] if named_source(sources[0]) else str(Path(sources[0]).absolute())
    prepared = prepared_like(record, name, listener)
    return rows_of(name if named_source(name) else Path(name).name, prepared.names), str(prepared.path)


def _is_source(text: str) -> bool:
    from scalestudy.data.sources.registry import named_source

    return named_source(text) is not None or (text.endswith(".npz") and Path(text).is_file())


def _globbed(given: Sequence[str]) -> list[str]:
    """Patterns that the shell has left, filled in."""
    import glob

    found = []
    for each in given:
        pattern = glob.has_magic(each) and not Path(each).exists()
        found += sorted(glob.glob(each, recursive=True)) if pattern else [each]
        if pattern and not glob.glob(each, recursive=True):
            raise UserError("a pattern that fits some images", f"{each}, which fits none", "Correct it.")
    return found


def _refuse_out(wanted: Wanted, items: "Sequence[Item]") -> None:
    """Refuse a folder that holds other things, and one in which images would be overwritten or read again."""
    import os

    out = wanted.out
    if out.exists() and not out.is_dir():
        raise UserError("a folder for the predictions", f"{out}, which is a file", "Name another with --out.")
    real = Path(os.path.realpath(out))
    for each in wanted.images:
        folder = Path(os.path.realpath(each))
        if folder.is_dir() and real.is_relative_to(folder):
            raise UserError(
                "a folder for the predictions outside the images",
                f"{out}, in {each}",
                "Name another with --out: what is written there would be taken for images.",
            )
    written = {
        str(real / kind / each.name) for each in items for kind in ("masks", "overlays", "probabilities")
    }
    for item in items:
        if item.file and str(Path(os.path.realpath(item.file)).with_suffix("")) in written:
            raise UserError(
                "a folder in which no image would be overwritten", f"{item.file}", "Name another with --out."
            )
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file() and not wanted.force:
        raise UserError(
            "an empty folder, or one of earlier predictions",
            f"{out}, which holds other things",
            "Name another with --out, or add --force: what is there stays, but for files of the same name.",
        )


def _begin(out: Path, found: FoundModel, wanted: Wanted) -> None:
    """Make the folder ours, and take away what an earlier prediction has left there."""
    from scalestudy.util.files import write_atomically

    ours = (out / MARK).is_file()
    out.mkdir(parents=True, exist_ok=True)
    if ours:
        for name in ("masks", "overlays", "probabilities"):
            shutil.rmtree(out / name, ignore_errors=True)
        for form in FORMATS:
            (out / f"predictions.{form}").unlink(missing_ok=True)
    told = {"model": str(found.path), "label": found.label, "complete": False}
    write_atomically(out / MARK, json.dumps(told, indent=1) + "\n")


def _lines(folder: Path) -> int:
    return sum(part.read_bytes().count(b"\n") for part in folder.glob("part-*.jsonl"))


def _read(folder: Path) -> list[dict[str, Any]]:
    texts = [part.read_text() for part in folder.glob("part-*.jsonl")]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def _finish(job: "Job", wanted: Wanted, found: FoundModel, lines: list[dict[str, Any]]) -> Predicted:
    """Write the table and what there is to say of it all."""
    from scalestudy.features.predict.table import as_csv, as_json_lines
    from scalestudy.util.files import write_atomically

    record = job.record
    done = [line for line in lines if "skipped" not in line]
    table = wanted.out / f"predictions.{wanted.format}"
    write_atomically(table, (as_csv if wanted.format == "csv" else as_json_lines)(done, record))
    classes = Counter(record.class_names[line["class"]] for line in done if "class" in line)
    told = Counter(word for line in done for word in line["told"])
    skipped = tuple((line["shown"], line["skipped"]) for line in lines if "skipped" in line)
    summary = {
        "model": str(found.path), "label": found.label, "complete": True, "images": len(done),
        "class_names": record.class_names, "done_to_images": dict(told),
        "skipped": [{"file": file, "reason": why} for file, why in skipped],
    }  # fmt: skip
    write_atomically(wanted.out / MARK, json.dumps(summary, indent=1) + "\n")
    return Predicted(table, len(done), skipped, dict(told), dict(classes))
