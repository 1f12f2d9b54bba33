"""The page of a run's best, median and worst validation samples."""

from pathlib import Path

from scalestudy.app.listener import Listener
from scalestudy.features.predict.evaluate import own_data
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.util.errors import UserError


def write_gallery(
    found: FoundModel, out: Path, listener: Listener, *, samples: int = 3, device: str = "auto"
) -> int:
    """Judge all validation samples of a run, and write a page of some of them.

    Args:
        found: A run's model.
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
    from scalestudy.features.predict.job import Job
    from scalestudy.features.predict.start import computed, device_for
    from scalestudy.report.gallery import to_page
    from scalestudy.report.write_document import check_page_name
    from scalestudy.study.gallery_record import GalleryRecord
    from scalestudy.study.metrics import known
    from scalestudy.util.files import write_atomically

    if found.record.kind not in ("masks", "classes"):
        raise UserError(
            "a model of images with masks or classes", f"one of {found.record.kind}", "See its report."
        )
    if not 1 <= samples <= 20:
        raise UserError("1 to 20 samples of each sort", f"{samples}", "Correct --samples.")
    check_page_name(out)
    if out.is_dir() or not out.parent.is_dir():
        raise UserError("a file for the page in a folder that is there", f"{out}", "Name another with --out.")
    prepared, rows, _ = own_data(found, listener)
    assert found.run is not None
    result = found.run.result()
    metric = found.record.metric or (result.metric if result else "")
    job = Job(
        action="gallery", model=str(found.path.absolute()), record=found.record,
        device="gpu" if device_for(device, 1) == "gpu" else "cpu", prepared=str(prepared.path),
        rows=list(rows), samples=samples, better=(result.better if result else None) or known(metric).better,
    )  # fmt: skip
    with (
        listener.computing("Judging", len(rows)) as on_progress,
        computed(job, lambda folder: 0, on_progress) as (_, answer),
    ):
        record = GalleryRecord.model_validate(answer)
    try:
        write_atomically(out, to_page(record, found.label))
    except OSError as error:
        raise UserError(
            "a file that can be written", f"{out}: {error.strerror}", "Name another one with --out."
        ) from error
    return len(rows)
