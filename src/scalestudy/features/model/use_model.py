"""Use a trained model in a process of its own: evaluate it, show its best and worst samples, export it."""

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from scalestudy.app.follow import Listener
from scalestudy.app.prepare import prepare_data
from scalestudy.cluster.worker_environment import own_gpus, process_environment
from scalestudy.config.settings import DataSettings
from scalestudy.data.split import Split, make_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.features.model.find_model import FoundModel
from scalestudy.features.model.image_inputs import ImageItem
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.launch.environments import python_of, variables_of
from scalestudy.plugins.engines import engine_traits
from scalestudy.report.details import gallery_document
from scalestudy.report.write_document import check_page_name, write_document
from scalestudy.store.model_record import GalleryRecord, ModelRecord
from scalestudy.store.permission import without_sources
from scalestudy.store.records import Record
from scalestudy.util import modules
from scalestudy.util.child_process import ask_module
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.files import write_atomically
from scalestudy.util.targets import refuse_link

EXPECTED = "the process that computes the predictions to succeed"
REMEDY = "If memory ran out, use smaller images."
SPLITS = ("train", "validation", "test", "all")


class ModelJob(Record):
    """A job, which its process reads from a file."""

    action: Literal["predict", "evaluate", "gallery", "export"]
    model: str
    """Model file of a run."""
    record: ModelRecord
    device: Literal["cpu", "gpu"] = "cpu"
    out: str = ""
    """Output folder or file."""
    items: list[ImageItem] = Field(default_factory=list)
    """Images to predict."""
    overlay: bool = False
    prepared: str = ""
    """Folder of a prepared data set."""
    rows: list[int] = Field(default_factory=list)
    """Rows of this data set."""
    form: str = ""
    """Format of an export."""


def device_for(asked: str) -> Literal["cpu", "gpu"]:
    """Return the device to compute on: by default GPUs if there are any, else the CPU.

    Raises:
        UserError: If GPUs are requested but missing.
    """
    if asked not in ("auto", "cpu", "gpu"):
        raise UserError(
            "--device auto, cpu or gpu",
            repr(asked),
            "Choose one of these.",
        )
    gpus = 0
    if asked != "cpu":
        gpus = len(visible_gpus(os.environ))
    if asked == "gpu" and not gpus:
        raise UserError(
            "a GPU",
            "no GPU that this process may use",
            "Use --device cpu, or run `scalestudy check` to see why.",
        )
    return "gpu" if gpus else "cpu"


def compute(
    model: FoundModel,
    asked: Mapping[str, Any],
    title: str,
    total: int,
    listener: Listener,
) -> Any:
    """Do a job with a model in a process of its own, and return its answer; `asked` has its fields.

    The listener shows the title and the progress, of `total` images or samples.

    Raises:
        UserError: If the process reports a user error, or the framework is missing.
        RunError: If it fails in another way.
    """
    of = {"model": str(model.path.absolute()), "record": without_sources(model.record)}
    job = ModelJob.model_validate(of | dict(asked))
    engine, environment = engine_traits(job.record.engine), model.environment
    if environment is None and engine.missing_software():
        raise UserError(
            f"{engine.label}, which computes the predictions",
            f"none in this Python ({sys.executable})",
            "Run this where training runs: in a job, in a container, or in the environment of"
            f" {engine.label}, with --environment DIR.",
        )
    gpus: Sequence[str] | None = []
    if job.device == "gpu":
        visible = visible_gpus(os.environ)
        if visible:
            gpus = own_gpus(os.environ, visible, local_rank=0)
    changes = process_environment(os.environ, engine, gpus=gpus, quiet=True)
    variables = changes.applied(os.environ)
    variables |= {"OMP_NUM_THREADS": str(len(cores.granted()))}
    python = sys.executable
    if environment:
        python = python_of(environment)
        variables = variables_of(environment, variables)
    with (
        listener.progress(title, total) as on_progress,
        tempfile.NamedTemporaryFile("w") as file,
    ):
        file.write(job.model_dump_json())
        file.flush()
        answer = ask_module(
            modules.INFERENCE,
            file.name,
            python=python,
            variables=variables,
            on_progress=on_progress,
        )
    if answer.code:
        raise RunError(EXPECTED, answer.end(), REMEDY)
    return answer.message


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
    ours, theirs = list(record.class_names), list(prepared.class_names)
    if ours != theirs:
        raise UserError(
            f"the classes of the training, in their order ({', '.join(ours[:10])})",
            f"{name} with {', '.join(theirs[:10])}",
            "Rename its classes, or leave out classes that the model does not know.",
        )
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
    kind = record.kind if record.kind in ("masks", "classes") else None
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
    record = GalleryRecord.model_validate(
        compute(model, job, "Judging", len(rows), listener)
    )
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
        name, data = (
            split or "validation",
            str(model.record.data.get("source") or prepared.path),
        )
    else:
        prepared = prepare_like(model.record, source, listener)
        name, data = split or "all", source
        parts = make_split(prepared, None, int(model.record.data.get("seed", 0)))
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


def _is_own(model: FoundModel, prepared: Prepared) -> bool:
    try:
        return own_data(model)[0].fingerprint == prepared.fingerprint
    except UserError:
        return False


def export_trained_model(
    model: FoundModel,
    out: Path,
    listener: Listener,
    *,
    force: bool = False,
) -> Path:
    """Export a run's model, and return the JSON file of its classes and preprocessing, written next to it.

    The suffix of `out` tells the format, one of its engine: ".keras", ".onnx", ".pt2", or none for the folder
    of a SavedModel. `force` replaces existing files.

    Raises:
        UserError: If the model cannot be written there, or in this format.
        RunError: If the process failed.
    """
    form = _form_of(model, out)
    _refuse(model, out, force=force)
    job = {"action": "export", "out": str(out.absolute()), "form": form}
    compute(model, job, f"Exporting as {form}", 1, listener)
    beside = metadata_path(out)
    write_atomically(beside, model.record.model_dump_json(indent=1) + "\n")
    return beside


def metadata_path(out: Path) -> Path:
    """Return the path of the JSON file next to an exported model."""
    return out.with_name(f"{out.name}.json")


def _form_of(model: FoundModel, out: Path) -> str:
    forms = engine_traits(model.record.engine).export_forms
    form = next((name for name, suffix in forms.items() if suffix == out.suffix), None)
    if form is None:
        known = []
        for suffix in forms.values():
            known.append(suffix or "nothing, for the folder of a SavedModel")
        raise UserError(
            f"a name that ends in {' or '.join(known)}",
            f"{out}",
            "Correct --out.",
        )
    return form


def _refuse(model: FoundModel, out: Path, *, force: bool) -> None:
    kept = model.run.path
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(kept)):
        raise UserError(
            "a target outside the run's folder",
            f"{out}, in {kept}",
            "Name another with --out.",
        )
    for path in (out, metadata_path(out)):
        refuse_link(path)
    if not out.absolute().parent.is_dir():
        raise UserError(
            "a folder to write to",
            f"{out.parent}, which does not exist",
            "Make it first.",
        )
    present = [path for path in (out, metadata_path(out)) if path.exists()]
    ours = (
        out.is_file()
        or not out.exists()
        or (out / "saved_model.pb").exists()
        or not any(out.iterdir())
    )
    if present and (not force or not ours):
        verb = "exists" if len(present) == 1 else "exist"
        # --force replaces what an export has written, never another folder.
        action = "Name another with --out."
        if ours:
            action = "Name another with --out, or replace them with --force."
        raise UserError(
            "a new file",
            f"{' and '.join(map(str, present))}, which {verb}",
            action,
        )
