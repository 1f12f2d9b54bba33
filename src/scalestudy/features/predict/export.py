"""Export a trained model for other programs."""

import os
from pathlib import Path

from scalestudy.app.listener import Listener
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.study.engines import engine_traits
from scalestudy.util.errors import UserError


def export_model(
    model: FoundModel, out: Path, form: str | None, listener: Listener, *, raw_inputs: bool = False,
    force: bool = False,
) -> Path:  # fmt: skip
    """Export a run's model, and return the JSON file of its classes and preprocessing, written next to it.

    `form` is a format of its engine: "keras", "savedmodel" (`out` is a folder), "onnx", "pt2" …; by default
    that of the suffix of `out`. With `raw_inputs`, the exported model takes inputs from 0 to 1 and does
    not include the scaling. `force` replaces existing files.

    Raises:
        UserError: If the model cannot be written there, or in this format.
        RunError: If the process failed.
    """
    from scalestudy.features.predict.job import ModelJob, computed
    from scalestudy.util.files import write_atomically

    forms = engine_traits(model.record.engine).export_forms
    form = form or next((name for name in forms if forms[name] == out.suffix), next(iter(forms)))
    _refuse(model, out, form, force=force)
    record = model.record.model_copy(update={"inputs": "scaled" if raw_inputs else "stored"})
    job = ModelJob(
        action="export", model=str(model.path.absolute()), record=record, out=str(out.absolute()), form=form
    )
    with computed(job, f"Exporting as {form}", 1, listener):
        pass
    beside = metadata_path(out)
    write_atomically(beside, record.model_dump_json(indent=1) + "\n")
    return beside


def metadata_path(out: Path) -> Path:
    """Return the path of the JSON file next to an exported model."""
    return out.with_name(f"{out.name}.json")


def _refuse(model: FoundModel, out: Path, form: str, *, force: bool) -> None:
    engine = engine_traits(model.record.engine)
    suffixes = engine.export_forms
    if form not in suffixes:
        raise UserError(f"--format {', '.join(suffixes)}", repr(form), "Choose one of these.")
    if model.path.suffix not in engine.model_suffixes or model.record.inputs == "stored":
        raise UserError(
            "a run's model", f"{model.path}, which is an exported one", "Name the run that trained it."
        )
    kept = model.path if model.run is None else model.run.path
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(kept)):
        raise UserError("a target outside the run's folder", f"{out}, in {kept}", "Name another with --out.")
    suffix = suffixes[form]
    if out.suffix != suffix and (suffix or out.suffix in suffixes.values()):
        raise UserError(
            f"a file that ends in {suffix}" if suffix else "a folder's name for a SavedModel",
            f"{out}",
            "Correct --out, or --format.",
        )
    if not out.absolute().parent.is_dir():
        raise UserError("a folder to write to", f"{out.parent}, which does not exist", "Make it first.")
    present = [path for path in (out, metadata_path(out)) if path.exists()]
    ours = out.is_file() or not out.exists() or (out / "saved_model.pb").exists() or not any(out.iterdir())
    if present and (not force or not ours):
        raise UserError(
            "a new file",
            f"{' and '.join(map(str, present))}, which exist{'s' * (len(present) == 1)}",
            "Name another with --out" + (", or replace them with --force." if ours else "."),
        )
