"""Export a trained model, with a record of its classes and preprocessing beside it."""

import os
from pathlib import Path

from scalestudy.app.follow import Listener
from scalestudy.features.model.find_model import FoundModel
from scalestudy.features.model.model_job import compute
from scalestudy.plugins.engines import engine_traits
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically
from scalestudy.util.targets import refuse_link


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
    # Refused before the work, and before anything is replaced.
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
    known = []
    for form, suffix in forms.items():
        if suffix == out.suffix:
            return form
        known.append(suffix or "nothing, for the folder of a SavedModel")
    raise UserError(
        f"a name that ends in {' or '.join(known)}",
        f"{out}",
        "Correct --out.",
    )


def _refuse(model: FoundModel, out: Path, *, force: bool) -> None:
    kept = model.run.path
    # Links resolved: the run's own model is never replaced, not even by --force.
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(kept)):
        raise UserError(
            "a target outside the run's folder",
            f"{out}, in {kept}",
            "Name another with --out.",
        )
    # Neither the model nor its record is written through a link.
    for path in (out, metadata_path(out)):
        refuse_link(path)
    if not out.absolute().parent.is_dir():
        raise UserError(
            "a folder to write to",
            f"{out.parent}, which does not exist",
            "Make it first.",
        )
    present = [path for path in (out, metadata_path(out)) if path.exists()]
    # --force replaces what an export has written, never another folder.
    is_ours = _may_be_an_export(out)
    if present and (not force or not is_ours):
        verb = "exist"
        if len(present) == 1:
            verb = "exists"
        action = "Name another with --out."
        if is_ours:
            action = "Name another with --out, or replace them with --force."
        raise UserError(
            "a new file",
            f"{' and '.join(map(str, present))}, which {verb}",
            action,
        )


def _may_be_an_export(out: Path) -> bool:
    """Whether a target is new, a file, an empty folder or a SavedModel."""
    if out.is_file() or not out.exists():
        return True
    if (out / "saved_model.pb").exists():
        return True
    return not any(out.iterdir())
