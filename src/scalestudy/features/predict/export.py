"""What is written of a trained model: a file for other programs, or a page of its samples."""

from pathlib import Path

from scalestudy.app.listener import Listener
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.study.engines import engine_traits
from scalestudy.util.errors import UserError


def export_model(
    model: FoundModel, out: Path, form: str, listener: Listener, *, raw_inputs: bool = False,
    force: bool = False,
) -> Path:  # fmt: skip
    """Write a model, and a JSON of its classes and preprocessing beside it.

    Args:
        model: A run's.
        out: File, or folder of a SavedModel.
        form: One of its engine's, as "keras", "savedmodel" or "onnx".
        listener: Is told.
        raw_inputs: Whether the model takes inputs from 0 to 1, without the scaling inside.
        force: Whether what is there may be replaced.

    Returns:
        File of the JSON.

    Raises:
        UserError: If it cannot be written there, or in this form.
        RunError: If the process failed.
    """
    from scalestudy.features.predict.job import ModelJob, computed
    from scalestudy.util.files import write_atomically

    _refuse(model, out, form, force=force)
    record = model.record.model_copy(update={"inputs": "scaled" if raw_inputs else "stored"})
    job = ModelJob(
        action="export", model=str(model.path.absolute()), record=record, out=str(out.absolute()), form=form
    )
    with (
        listener.computing(f"Exporting as {form}", 1) as on_progress,
        computed(job, lambda _: 0, on_progress),
    ):
        pass
    beside = beside_of(out)
    write_atomically(beside, record.model_dump_json(indent=1) + "\n")
    return beside


def beside_of(out: Path) -> Path:
    """File of the JSON beside an exported model."""
    return out.with_name(f"{out.name}.json")


def _refuse(model: FoundModel, out: Path, form: str, *, force: bool) -> None:
    engine = engine_traits(model.record.engine)
    suffixes = engine.export_forms
    if form not in suffixes:
        raise UserError(f"--format {', '.join(suffixes)}", repr(form), "Choose one of these.")
    if model.path.suffix != engine.model_suffix or model.record.inputs == "stored":
        raise UserError(
            "a run's model", f"{model.path}, which was exported before", "Name the run that trained it."
        )
    suffix = suffixes[form]
    if out.suffix != suffix and (suffix or out.suffix in suffixes.values()):
        raise UserError(
            f"a file that ends in {suffix}" if suffix else "a folder's name for a SavedModel",
            f"{out}",
            "Correct --out, or --format.",
        )
    if not out.absolute().parent.is_dir():
        raise UserError("a folder to write to", f"{out.parent}, which does not exist", "Make it first.")
    present = [path for path in (out, beside_of(out)) if path.exists()]
    ours = out.is_file() or not out.exists() or (out / "saved_model.pb").exists() or not any(out.iterdir())
    if present and (not force or not ours):
        raise UserError(
            "a name that is free",
            f"{' and '.join(map(str, present))}, which exist{'s' * (len(present) == 1)}",
            "Name another with --out" + (", or replace them with --force." if ours else "."),
        )


def write_gallery(
    model: FoundModel, out: Path, listener: Listener, *, samples: int = 3, device: str = "auto"
) -> int:
    """Judge all validation samples of a run, and write a page of some of them.

    Args:
        model: A run's.
        out: File of the page.
        listener: Is told.
        samples: Of each sort: best, median and worst, by loss and by quality.
        device: "auto", "cpu" or "gpu".

    Returns:
        How many samples were judged.

    Raises:
        UserError: If the model is of no run, its data are gone, or the page cannot be written.
        RunError: If the process failed.
    """
    from scalestudy.features.predict.evaluate import own_data
    from scalestudy.features.predict.job import ModelJob, computed, device_for
    from scalestudy.report.details import gallery_document
    from scalestudy.report.write_document import check_page_name, write_document
    from scalestudy.study.gallery_record import GalleryRecord
    from scalestudy.study.metrics import known

    if not 1 <= samples <= 20:
        raise UserError("1 to 20 samples of each sort", f"{samples}", "Correct --samples.")
    check_page_name(out)
    if out.is_dir() or not out.parent.is_dir():
        raise UserError("a file for the page in a folder that is there", f"{out}", "Name another with --out.")
    prepared, split, run = own_data(model)
    rows, result = split.validation.tolist(), run.result()
    metric = model.record.metric or (result.metric if result else "")
    job = ModelJob(
        action="gallery", model=str(model.path.absolute()), record=model.record,
        device=device_for(device, 1), prepared=str(prepared.path), rows=rows, samples=samples,
        better=(result.better if result else None) or known(metric).better,
    )  # fmt: skip
    with (
        listener.computing("Judging", len(rows)) as on_progress,
        computed(job, lambda folder: 0, on_progress) as (_, answer),
    ):
        record = GalleryRecord.model_validate(answer)
    try:
        write_document(gallery_document(record, model.label), "html", out)
    except OSError as error:
        raise UserError(
            "a file that can be written", f"{out}: {error.strerror}", "Name another one with --out."
        ) from error
    return len(rows)
