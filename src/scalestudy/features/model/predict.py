"""Predict images with a trained model, and write the results."""

import csv
import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.app.follow import Listener
from scalestudy.features.model.find_model import FoundModel
from scalestudy.features.model.image_inputs import ImageItem, files_of
from scalestudy.features.model.model_job import compute, device_for
from scalestudy.store.model_record import ModelRecord
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

MARK = "predictions.json"
"""This file marks a folder of predictions."""
FOLDERS = ("masks", "overlays")
TABLE = "predictions.csv"
DIGITS = 6
"""Digits of shares and probabilities in the CSV."""


class Wanted(NamedTuple):
    """Images to predict and how to write the results: the options of `model predict`."""

    images: tuple[str, ...]
    out: Path
    overlay: bool = False
    device: str = "auto"
    force: bool = False
    """Whether `out` may hold other files."""


class Predicted(NamedTuple):
    """Summary of predictions; `classes` are numbers of images by predicted class."""

    table: Path
    images: int
    skipped: tuple[tuple[str, str], ...]
    classes: dict[str, int]


def plan_prediction(model: FoundModel, wanted: Wanted) -> dict[str, Any]:
    """Return the job that `predict` would do, without computing or writing anything.

    Raises:
        UserError: If images, options or the output folder are invalid.
    """
    if model.record.kind == "classes" and wanted.overlay:
        raise UserError(
            "--overlay for a model that predicts masks",
            "a model of classes",
            "Leave --overlay out.",
        )
    items = files_of(wanted.images)
    _refuse_out(wanted, items)
    return {
        "action": "predict",
        "device": device_for(wanted.device),
        "out": str(wanted.out.absolute()),
        "items": items,
        "overlay": wanted.overlay,
    }


def predict(model: FoundModel, wanted: Wanted, listener: Listener) -> Predicted:
    """Predict images, and write masks or classes with their table.

    Images that cannot be read are skipped and listed in the result.

    Raises:
        UserError: If images, options or the output folder are invalid; nothing has been written then.
        RunError: If a process failed.
    """
    job = plan_prediction(model, wanted)
    _begin(wanted.out, model)
    answer = compute(model, job, "Predicting", len(job["items"]), listener)
    return _finish(model, wanted, answer["lines"])


def _refuse_out(wanted: Wanted, items: Sequence[ImageItem]) -> None:
    """Raise `UserError` if `out` holds other files, or if results could replace images or be read as such."""
    out = wanted.out
    if out.exists() and not out.is_dir():
        raise UserError(
            "a folder for the predictions",
            f"{out}, which is a file",
            "Name another with --out.",
        )
    # Links are resolved: two names may mean one folder.
    real = Path(os.path.realpath(out))
    # An image in a folder may be a link to one elsewhere.
    files = [item.file for item in items]
    for name in [*wanted.images, *files]:
        image = Path(os.path.realpath(name))
        holds_image = image.is_relative_to(real)
        if holds_image or (image.is_dir() and real.is_relative_to(image)):
            raise UserError(
                "separate folders for the predictions and the images",
                f"{out} and {name}",
                "Name another with --out: predictions would be read as images, or replace them.",
            )
    if out.is_dir() and any(out.iterdir()) and not wanted.force:
        held = "other files"
        if (out / MARK).is_file():
            held = "earlier predictions"
        raise UserError(
            "a new or an empty folder",
            f"{out}, which holds {held}",
            "Name another with --out, or add --force, which replaces predictions and files of the same name.",
        )


def _begin(out: Path, model: FoundModel) -> None:
    """Mark the output folder, and remove the results of earlier predictions from it."""
    # Masks of images that are no longer predicted would be taken for results of this model.
    if (out / MARK).is_file():
        for name in FOLDERS:
            shutil.rmtree(out / name, ignore_errors=True)
        (out / TABLE).unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    # Until all results are written, the mark says that they are not complete.
    _mark(out, model, complete=False)


def _mark(out: Path, model: FoundModel, **summary: Any) -> None:
    summary = {"model": str(model.path), "label": model.label, **summary}
    write_atomically(out / MARK, json.dumps(summary, indent=1) + "\n")


def _finish(
    model: FoundModel,
    wanted: Wanted,
    lines: list[dict[str, Any]],
) -> Predicted:
    record = model.record
    done = []
    skipped = []
    reasons = []
    for line in lines:
        if "skipped" not in line:
            done.append(line)
            continue
        file = line["shown"]
        why = line["skipped"]
        skipped.append((file, why))
        reasons.append({"file": file, "reason": why})
    table = wanted.out / TABLE
    write_atomically(table, as_csv(done, record))
    classes = Counter[str]()
    for line in done:
        if "class" in line:
            name = record.class_names[line["class"]]
            classes[name] += 1
    # Last, so that a folder whose prediction was interrupted is not marked as complete.
    _mark(
        wanted.out,
        model,
        complete=True,
        images=len(done),
        class_names=record.class_names,
        skipped=reasons,
    )
    return Predicted(table, len(done), tuple(skipped), dict(classes))


def as_csv(lines: Sequence[dict[str, Any]], record: ModelRecord) -> str:
    """Return a row for each image: its class and probabilities, or its mask and the share of each class."""
    stream = io.StringIO()
    # By itself, `csv` ends lines as Windows does.
    writer = csv.writer(stream, lineterminator="\n")
    masks = record.kind == "masks"
    if masks:
        shares = [f"share_{name}" for name in record.class_names]
        writer.writerow(["file", "mask", "height", "width", *shares])
    else:
        writer.writerow(["file", "class", *record.class_names])
    for line in lines:
        if masks:
            cells = [line["mask"], line["height"], line["width"]]
            numbers = line["shares"]
        else:
            cells = [record.class_names[line["class"]]]
            numbers = line["probabilities"]
        texts = [f"{number:.{DIGITS}f}" for number in numbers]
        writer.writerow([line["shown"], *cells, *texts])
    return stream.getvalue()
