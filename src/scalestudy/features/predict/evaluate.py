"""Evaluate a trained model: loss and metrics over a data set, or a page of its best and worst samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.app.listener import Listener
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.data.splits.split import Split
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.study.model_record import ModelRecord
    from scalestudy.study.run_folder import RunFolder

SPLITS = ("train", "validation", "test", "all")


@dataclass(frozen=True)
class Evaluated:
    """Loss and metrics of a model over the samples of a split."""

    model: str
    data: str
    split: str
    samples: int
    results: dict[str, float]
    matrices: dict[str, list[list[int]]]
    """Confusion matrices by name of their metric, with a row for each true class."""


def evaluate(
    model: FoundModel, source: str | None, split: str | None, listener: Listener, *, device: str = "auto"
) -> Evaluated:
    """Evaluate a model over a data set, each sample once. Without a `source`, this is the run's own data set.

    `split` is one of SPLITS. By default it is "all", or for the run's own data set "validation", on
    which the run's quality was measured.

    Raises:
        UserError: If the classes differ, or the split has no samples.
        RunError: If the process failed.
    """
    import numpy as np

    from scalestudy.features.predict.job import ModelJob, computed, device_for
    from scalestudy.study.engines import engine_traits

    suffixes = engine_traits(model.record.engine).model_suffixes
    if model.record.inputs != "scaled" or model.path.suffix not in suffixes:
        raise UserError(
            f"a run, or a {' or '.join(suffixes)} file of its folder",
            f"{model.path}, which was exported for other programs",
            "Name the run that trained it, whose task has the loss and the metrics.",
        )
    prepared, rows, name, data = _data(model, source, split, listener)
    classes = matched(model.record, prepared, data)
    job = ModelJob(
        action="evaluate", model=str(model.path.absolute()), record=model.record,
        device=device_for(device, 1), prepared=str(prepared.path), rows=np.asarray(rows).tolist(),
        classes=classes,
    )  # fmt: skip
    with computed(job, "Evaluating", len(rows), listener, _count) as (_, answer):
        return Evaluated(model.label, data, name, answer["samples"], answer["results"], answer["matrices"])


def matched(record: "ModelRecord", prepared: "Prepared", name: str) -> list[int]:
    """Return the model's class index for each class of a data set, matched by name.

    Raises:
        UserError: If kind, classes or scaling of the data differ from those in training.
    """
    if prepared.kind != record.kind:
        raise UserError(
            f"data of the kind {record.kind}, as in training",
            f"{name} of the kind {prepared.kind}",
            "Name another source.",
        )
    ours, theirs = list(record.class_names), list(prepared.class_names)
    if set(ours) != set(theirs):
        raise UserError(
            f"the classes of the training ({', '.join(ours[:10])})",
            f"{name} with {', '.join(theirs[:10])}",
            "Rename its classes, or leave out classes that the model does not know.",
        )
    if (record.scale == 1) != (prepared.scale == 1):
        raise UserError(
            f"inputs stored as in training ({record.dtype}, multiplied by {record.scale:.6g})",
            f"{name}, multiplied by {prepared.scale:.6g}",
            "Store both as whole numbers, or both as floating-point numbers of one range.",
        )
    return [ours.index(label) for label in theirs]


def own_data(model: FoundModel) -> "tuple[Prepared, Split, RunFolder]":
    """Return the prepared data set of a run, its split, and the run.

    Raises:
        UserError: If the model does not belong to a run, or the run's data no longer exist.
    """
    from scalestudy.data.splits.split import Split
    from scalestudy.data.store.prepared import Prepared

    if model.run is None:
        raise UserError(
            "--data, or a run with its own data",
            f"{model.path} alone",
            "Name a data set with --data, or the run's folder.",
        )
    files = model.run.point().needed_files()
    try:
        prepared = Prepared.open(files.prepared)
    except UserError as error:
        raise UserError(
            "the prepared data set of the run",
            error.received,
            "Prepare it again (`scalestudy data prepare STUDY`), or name the data with --data.",
        ) from error
    return prepared, Split.load(files.split), model.run


def prepared_like(record: "ModelRecord", source: str, listener: Listener) -> "Prepared":
    """Prepare a source in the same way as the training images; paths are relative to the working folder.

    Raises:
        UserError: If the source does not exist, or is of another kind.
    """
    from scalestudy.app.prepare import prepare_data
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.study.settings import DataSettings

    settings = {key: value for key, value in record.data.items() if key in DataSettings.model_fields}
    # The study's cache may be relative to the study file, whose folder is unknown here.
    data = DataSettings.model_validate(settings | {"source": source, "validation": None, "cache": None})
    kind = record.kind if record.kind in ("masks", "classes") else None
    folder, _, _ = prepare_data(data, kind, Path(), listener)  # type: ignore[arg-type]
    return Prepared.open(folder)


def write_gallery(
    model: FoundModel, out: Path, listener: Listener, *, samples: int = 3, device: str = "auto"
) -> int:
    """Evaluate each validation sample of a run, write a page with some of them, and return their number.

    The page shows `samples` samples of each kind: best, median and worst, by loss and by quality.

    Raises:
        UserError: If the model is not that of a run, its data no longer exist, or writing the page fails.
        RunError: If the process failed.
    """
    from scalestudy.features.predict.job import ModelJob, computed, device_for
    from scalestudy.report.details import gallery_document
    from scalestudy.report.write_document import check_page_name, write_document
    from scalestudy.study.gallery_record import GalleryRecord
    from scalestudy.study.metrics import known

    if not 1 <= samples <= 20:
        raise UserError("1 to 20 samples of each kind", f"{samples}", "Correct --number.")
    check_page_name(out)
    if out.is_dir() or not out.parent.is_dir():
        raise UserError("a file in an existing folder for the page", f"{out}", "Name another with --out.")
    prepared, split, run = own_data(model)
    rows, result = split.validation.tolist(), run.result()
    metric = model.record.metric or (result.metric if result else "")
    job = ModelJob(
        action="gallery", model=str(model.path.absolute()), record=model.record,
        device=device_for(device, 1), prepared=str(prepared.path), rows=rows, samples=samples,
        better=(result.better if result else None) or known(metric).better,
    )  # fmt: skip
    with computed(job, "Judging", len(rows), listener) as (_, answer):
        record = GalleryRecord.model_validate(answer)
    try:
        write_document(gallery_document(record, model.label), "html", out)
    except OSError as error:
        raise UserError(
            "a file that can be written", f"{out}: {error.strerror}", "Name another one with --out."
        ) from error
    return len(rows)


def _data(
    model: FoundModel, source: str | None, split: str | None, listener: Listener
) -> "tuple[Prepared, Sequence[int], str, str]":
    """Return the prepared set, its rows to evaluate, the name of the split, and the name of the data."""
    from scalestudy.data.splits.split import make_split

    if split is not None and split not in SPLITS:
        raise UserError(f"--split {', '.join(SPLITS)}", repr(split), "Choose one of these.")
    if source is None:
        prepared, parts, _ = own_data(model)
        name, data = split or "validation", str(model.record.data.get("source") or prepared.path)
    else:
        prepared = prepared_like(model.record, source, listener)
        name, data = split or "all", source
        parts = make_split(prepared, None, int(model.record.data.get("seed", 0)))
        if _is_own(model, prepared):
            listener.note(f"{source} is what the model was trained on: its training samples are among these.")
        if name != "all" and name not in prepared.given:
            raise UserError(
                f"data with a {name} set",
                f"{source}, which has {', '.join(prepared.given) or 'none'}",
                "Leave out --split to evaluate on all samples.",
            )
    rows = range(prepared.count) if name == "all" else getattr(parts, name)
    if name == "test" and not len(rows) and parts.quality_split == "test":
        rows = parts.validation
    if not len(rows):
        raise UserError(
            f"samples in the {name} set of {data}",
            "none",
            f"Choose another --split: {', '.join(SPLITS)}.",
        )
    return prepared, rows, name, data


def _is_own(model: FoundModel, prepared: "Prepared") -> bool:
    try:
        return model.run is not None and own_data(model)[0].fingerprint == prepared.fingerprint
    except UserError:
        return False


def _count(folder: Path) -> int:
    file = folder / "progress"
    return int(file.read_text()) if file.exists() else 0
