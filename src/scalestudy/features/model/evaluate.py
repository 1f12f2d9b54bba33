"""Evaluate a trained model over a data set, and show its best and worst samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalestudy.app.follow import Listener
from scalestudy.app.prepare import prepare_data
from scalestudy.config.settings import DataSettings
from scalestudy.data.split import Split, make_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.features.model.find_model import FoundModel
from scalestudy.features.model.model_job import compute, device_for
from scalestudy.report.details import gallery_document
from scalestudy.report.write_document import check_page_name, write_document
from scalestudy.store.model_record import GalleryRecord, ModelRecord
from scalestudy.util.errors import UserError

SPLITS = ("train", "validation", "test", "all")


class Evaluated(NamedTuple):
    """Loss and metrics of a model over the samples of a split."""

    model: str
    data: str
    split: str
    samples: int
    results: dict[str, float]


def evaluate_model(
    model: FoundModel,
    source: str | None,
    split: str | None,
    listener: Listener,
    *,
    device: str = "auto",
) -> Evaluated:
    """Evaluate a model over a data set, each sample once. Without a `source`, this is the run's own data set.

    `split` is one of SPLITS. By default it is "all", or for the run's own data set "validation", on
    which the run's quality was measured.

    Raises:
        UserError: If the classes differ, or the split has no samples.
        RunError: If the process failed.
    """
    prepared, rows, name, data = _data(model, source, split, listener)
    refuse_other_data(model.record, prepared, data)
    job = {
        "action": "evaluate",
        "device": device_for(device),
        "prepared": str(prepared.path),
        "rows": np.asarray(rows).tolist(),
    }
    answer = compute(model, job, "Evaluating", len(rows), listener)
    return Evaluated(model.label, data, name, answer["samples"], answer["results"])


def refuse_other_data(record: ModelRecord, prepared: Prepared, name: str) -> None:
    """Raise `UserError` if kind, classes or scaling of a data set differ from those in training."""
    if prepared.kind != record.kind:
        raise UserError(
            f"data of the kind {record.kind}, as in training",
            f"{name} of the kind {prepared.kind}",
            "Name another source.",
        )
    ours = list(record.class_names)
    theirs = list(prepared.class_names)
    # Equal sets in another order are refused as well: the model's outputs would be held against other classes.
    if ours != theirs:
        raise UserError(
            f"the classes of the training, in their order ({', '.join(ours[:10])})",
            f"{name} with {', '.join(theirs[:10])}",
            "Rename its classes, or leave out classes that the model does not know.",
        )
    # Whole numbers are multiplied by 1/255 or 1/65535, so 8 and 16 bits agree. Of floating-point numbers nothing
    # says the range.
    if (record.scale == 1) != (prepared.scale == 1):
        raise UserError(
            f"inputs stored as in training ({record.dtype}, multiplied by {record.scale:.6g})",
            f"{name}, multiplied by {prepared.scale:.6g}",
            "Store both as whole numbers, or both as floating-point numbers of one range.",
        )


def own_data(model: FoundModel) -> tuple[Prepared, Split]:
    """Return the prepared data set of a run, and its split.

    Raises:
        UserError: If the run's data no longer exist.
    """
    files = model.run.point().needed_files()
    try:
        prepared = Prepared.open(files.prepared)
    except UserError as error:
        raise UserError(
            "the prepared data set of the run",
            error.received,
            "Prepare it again (`scalestudy data prepare STUDY`), or name the data with --data.",
        ) from error
    return prepared, Split.load(files.split)


def prepare_like(record: ModelRecord, source: str, listener: Listener) -> Prepared:
    """Prepare a source in the same way as the training images; paths are relative to the working folder.

    Raises:
        UserError: If the source does not exist, or is of another kind.
    """
    settings = {}
    for key, value in record.data.items():
        if key in DataSettings.model_fields:
            settings[key] = value
    # The cache may be relative to the study file, whose folder is unknown here. A record must not name code.
    left_out = {"validation": None, "cache": None, "read": None}
    data = DataSettings.model_validate(settings | left_out | {"source": source})
    kind = None
    if record.kind in ("masks", "classes"):
        kind = record.kind
    folder, _, _ = prepare_data(data, kind, Path(), listener)  # type: ignore[arg-type]
    return Prepared.open(folder)


def write_gallery(
    model: FoundModel,
    out: Path,
    listener: Listener,
    *,
    device: str = "auto",
) -> int:
    """Evaluate each validation sample of a run, write a page with some of them, and return their number.

    Raises:
        UserError: If the data of the run no longer exist, or writing the page fails.
        RunError: If the process failed.
    """
    # Before the work: a page that cannot be written would be noticed only after it.
    check_page_name(out)
    if out.is_dir() or not out.parent.is_dir():
        raise UserError(
            "a file in an existing folder for the page",
            f"{out}",
            "Name another with --out.",
        )
    prepared, split = own_data(model)
    rows = split.validation.tolist()
    job = {
        "action": "gallery",
        "device": device_for(device),
        "prepared": str(prepared.path),
        "rows": rows,
    }
    answer = compute(model, job, "Judging", len(rows), listener)
    record = GalleryRecord.model_validate(answer)
    try:
        write_document(gallery_document(record, model.label), "html", out)
    except OSError as error:
        raise UserError(
            "a file that can be written",
            f"{out}: {error.strerror}",
            "Name another one with --out.",
        ) from error
    return len(rows)


def _data(
    model: FoundModel,
    source: str | None,
    split: str | None,
    listener: Listener,
) -> tuple[Prepared, Sequence[int], str, str]:
    """Return the prepared set, its rows to evaluate, the name of the split, and the name of the data."""
    if split is not None and split not in SPLITS:
        raise UserError(
            f"--split {', '.join(SPLITS)}",
            repr(split),
            "Choose one of these.",
        )
    if source is None:
        prepared, parts = own_data(model)
        name = split or "validation"
        data = str(model.record.data.get("source") or prepared.path)
    else:
        prepared = prepare_like(model.record, source, listener)
        name = split or "all"
        data = source
        seed = int(model.record.data.get("seed", 0))
        parts = make_split(prepared, None, seed)
        # Over samples that it was trained on, a model looks better than it is.
        if _is_own(model, prepared):
            listener.note(
                f"{source} is what the model was trained on: its training samples are among these."
            )
        if name != "all" and name not in prepared.given:
            raise UserError(
                f"data with a {name} set",
                f"{source}, which has {', '.join(prepared.given) or 'none'}",
                "Leave out --split to evaluate on all samples.",
            )
    rows: Any = range(prepared.count)
    if name != "all":
        rows = getattr(parts, name)
    # A source with a test set but no validation set: the quality of its runs is that of the test set.
    if name == "test" and not len(rows) and parts.quality_split == "test":
        rows = parts.validation
    if not len(rows):
        raise UserError(
            f"samples in the {name} set of {data}",
            "none",
            f"Choose another --split: {', '.join(SPLITS)}.",
        )
    return prepared, rows, name, data


def _is_own(model: FoundModel, prepared: Prepared) -> bool:
    try:
        own, _ = own_data(model)
    except UserError:
        return False
    return own.fingerprint == prepared.fingerprint
