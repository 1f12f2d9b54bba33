"""Predict images with a trained model, and write the results."""

import csv
import io
import json
import os
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
    from scalestudy.features.predict.inputs import ImageItem
    from scalestudy.features.predict.job import ModelJob
    from scalestudy.study.model_record import ModelRecord

MARK = "predictions.json"
"""This file marks a folder of predictions."""
FOLDERS = ("masks", "overlays", "probabilities")
TABLE = "predictions.csv"
DIGITS = 6
"""Digits of shares and probabilities in the CSV."""


@dataclass(frozen=True)
class Wanted:
    """Images to predict and how to write the results: the options of `model predict`."""

    images: tuple[str, ...]
    out: Path
    overlay: bool = False
    probabilities: bool = False
    workers: int = 1
    device: str = "auto"
    force: bool = False
    """Whether `out` may hold other files."""


@dataclass(frozen=True)
class Predicted:
    """Summary of predictions."""

    table: Path
    images: int
    """Number of predicted images."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Skipped images, and why."""
    changes: dict[str, int] = field(default_factory=dict)
    """Number of images by change applied."""
    classes: dict[str, int] = field(default_factory=dict)
    """For tasks with classes, number of images predicted as each class."""


def plan(model: FoundModel, wanted: Wanted, listener: Listener) -> "ModelJob":
    """Return the job that `predict` would run, without computing or writing anything.

    Raises:
        UserError: If images, options or the output folder are invalid.
    """
    from scalestudy.data.sources.files import several
    from scalestudy.features.predict.inputs import files_of
    from scalestudy.features.predict.job import ModelJob, device_for

    _refuse_options(model.record, wanted)
    items, left_out = files_of(wanted.images)
    if left_out:
        listener.note(f"Masks are not predicted: {several([str(path) for path in left_out])} left out.")
    workers = min(wanted.workers, len(items))
    _refuse_out(wanted, items)
    return ModelJob.model_validate({
        "action": "predict", "model": str(model.path.absolute()), "record": model.record, "size": workers,
        "device": device_for(wanted.device, workers), "out": str(wanted.out.absolute()), "items": items,
        "overlay": wanted.overlay, "probabilities": wanted.probabilities,
    })  # fmt: skip


def predict(model: FoundModel, wanted: Wanted, listener: Listener) -> Predicted:
    """Predict images, and write masks or classes with their table.

    Images that cannot be read are skipped and listed in the result.

    Raises:
        UserError: If images, options or the output folder are invalid; nothing has been written then.
        RunError: If a process failed.
    """
    from scalestudy.features.predict.job import computed

    job = plan(model, wanted, listener)
    _begin(wanted.out, model)
    with computed(job, "Predicting", len(job.items), listener, _count) as (folder, _):
        texts = [part.read_text() for part in folder.glob("part-*.jsonl")]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    return _finish(model, wanted, sorted(lines, key=lambda line: int(line["index"])))


def _refuse_options(record: "ModelRecord", wanted: Wanted) -> None:
    if record.kind not in ("masks", "classes"):
        raise UserError(
            "a model of images with masks or classes",
            f"one of {record.kind}",
            "Export it, and use it in your own program.",
        )
    if record.kind == "classes" and (wanted.overlay or wanted.probabilities):
        option = "--overlay" if wanted.overlay else "--probabilities"
        raise UserError(
            f"{option} for a model that predicts masks",
            "a model that predicts a class for each image",
            f"Leave {option} out: the table holds the probability of each class.",
        )


def _refuse_out(wanted: Wanted, items: "Sequence[ImageItem]") -> None:
    """Raise `UserError` if `out` holds other files, or if results could replace images or be read as such."""
    out = wanted.out
    if out.exists() and not out.is_dir():
        raise UserError("a folder for the predictions", f"{out}, which is a file", "Name another with --out.")
    real = Path(os.path.realpath(out))
    for name in [*wanted.images, *(item.file for item in items)]:
        image = Path(os.path.realpath(name))
        if image.is_relative_to(real) or (image.is_dir() and real.is_relative_to(image)):
            raise UserError(
                "separate folders for the predictions and the images",
                f"{out} and {name}",
                "Name another with --out: predictions would be read as images, or replace them.",
            )
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file() and not wanted.force:
        raise UserError(
            "an empty folder, or one of earlier predictions",
            f"{out}, which holds other files",
            "Name another with --out, or add --force, which replaces files of the same name only.",
        )


def _begin(out: Path, model: FoundModel) -> None:
    """Mark the output folder, and remove the results of earlier predictions from it."""
    if (out / MARK).is_file():
        for name in FOLDERS:
            shutil.rmtree(out / name, ignore_errors=True)
        (out / TABLE).unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    _mark(out, model, complete=False)


def _mark(out: Path, model: FoundModel, **summary: Any) -> None:
    from scalestudy.util.files import write_atomically

    summary = {"model": str(model.path), "label": model.label, **summary}
    write_atomically(out / MARK, json.dumps(summary, indent=1) + "\n")


def _count(folder: Path) -> int:
    return sum(part.read_bytes().count(b"\n") for part in folder.glob("part-*.jsonl"))


def _finish(model: FoundModel, wanted: Wanted, lines: list[dict[str, Any]]) -> Predicted:
    from scalestudy.util.files import write_atomically

    record = model.record
    done = [line for line in lines if "skipped" not in line]
    table = wanted.out / TABLE
    write_atomically(table, as_csv(done, record))
    classes = Counter(record.class_names[line["class"]] for line in done if "class" in line)
    changes = Counter(change for line in done for change in line["told"])
    skipped = tuple((line["shown"], line["skipped"]) for line in lines if "skipped" in line)
    _mark(
        wanted.out, model, complete=True, images=len(done), class_names=record.class_names,
        done_to_images=dict(changes), skipped=[{"file": file, "reason": why} for file, why in skipped],
    )  # fmt: skip
    return Predicted(table, len(done), skipped, dict(changes), dict(classes))


def as_csv(lines: Sequence[dict[str, Any]], record: "ModelRecord") -> str:
    """Return a row for each image: its class and probabilities, or its mask and the share of each class."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    masks = record.kind == "masks"
    first = ["file", "mask", "height", "width"] if masks else ["file", "class"]
    writer.writerow([*first, *(f"share_{name}" if masks else name for name in record.class_names)])
    for line in lines:
        numbers = line["shares"] if masks else line["probabilities"]
        cells = (
            [line["mask"], line["height"], line["width"]] if masks else [record.class_names[line["class"]]]
        )
        writer.writerow([line["shown"], *cells, *(f"{number:.{DIGITS}f}" for number in numbers)])
    return stream.getvalue()
