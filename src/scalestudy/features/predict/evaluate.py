"""Loss and metrics of a trained model over a data set."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.app.listener import Listener
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalestudy.data.store.prepared import Prepared
    from scalestudy.study.model_record import ModelRecord

SPLITS = ("train", "validation", "test", "all")


@dataclass(frozen=True)
class Evaluated:
    """What was found.

    Attributes:
        model: What was evaluated, for people.
        data: Over what.
        split: Which of its rows.
        samples: Their number.
        results: Loss and metrics.
        matrices: Confusion matrices by the names of their metrics, a row for each true class.
    """

    model: str
    data: str
    split: str
    samples: int
    results: dict[str, float]
    matrices: dict[str, list[list[int]]]


def evaluate(
    found: FoundModel,
    source: str | None,
    split: str | None,
    listener: Listener,
    *,
    workers: int = 1,
    device: str = "auto",
) -> Evaluated:
    """Evaluate a model over a data set, each sample once.

    Args:
        found: The model.
        source: Another data set; None for the run's own.
        split: "train", "validation", "test" or "all"; when absent, all of another set, and of the run's own
            that on which its quality was measured.
        listener: Is told.
        workers: Processes that share the samples.
        device: "auto", "cpu" or "gpu".

    Raises:
        UserError: If the classes differ, or there are no such samples.
        RunError: If a process failed.
    """
    import numpy as np

    from scalestudy.features.predict.job import Job
    from scalestudy.features.predict.start import computed, device_for
    from scalestudy.study.engines import engine_traits

    suffix = engine_traits(found.record.engine).model_suffix
    if found.record.inputs != "scaled" or found.path.suffix != suffix:
        raise UserError(
            f"a run, or a {suffix} file of its folder",
            f"{found.path}, which was exported for other programs",
            "Name the run that trained it: its task has the loss and the metrics.",
        )
    if workers < 1:
        raise UserError("at least one worker", f"{workers}", "Correct --workers.")
    prepared, rows, name, data = _data(found, source, split, listener)
    classes = matched(found.record, prepared, data)
    workers = min(workers, len(rows))
    job = Job(
        action="evaluate", model=str(found.path.absolute()), record=found.record, size=workers,
        device="gpu" if device_for(device, workers) == "gpu" else "cpu", prepared=str(prepared.path),
        rows=np.asarray(rows).tolist(), classes=classes,
    )  # fmt: skip
    with (
        listener.computing("Evaluating", len(rows)) as on_progress,
        computed(job, _done, on_progress) as (_, answer),
    ):
        return Evaluated(found.label, data, name, answer["samples"], answer["results"], answer["matrices"])


def matched(record: "ModelRecord", prepared: "Prepared", name: str) -> list[int]:
    """The model's class for each class of a data set, by their names.

    Raises:
        UserError: If they are not the same, or of another kind.
    """
    if prepared.kind != record.kind:
        raise UserError(
            f"data of the kind {record.kind}, which the model was trained on",
            f"{name} of the kind {prepared.kind}",
            "Name another source.",
        )
    ours, theirs = list(record.class_names), list(prepared.class_names)
    if set(ours) != set(theirs):
        unknown = [each for each in theirs if each not in ours]
        missing = [each for each in ours if each not in theirs]
        parts = [f"{', '.join(unknown[:5])} besides"] * bool(unknown)
        parts += [f"without {', '.join(missing[:5])}"] * bool(missing)
        raise UserError(
            f"the classes that the model was trained on ({', '.join(ours[:10])})",
            f"{name}, {' and '.join(parts)}",
            "Rename its classes, or leave out what the model does not know.",
        )
    if (record.scale == 1) != (prepared.scale == 1):
        raise UserError(
            f"inputs stored as in training ({record.dtype}, multiplied by {record.scale:.6g})",
            f"{name}, multiplied by {prepared.scale:.6g}",
            "Store both as whole numbers, or both as floating-point numbers of one range.",
        )
    return [ours.index(each) for each in theirs]


def own_data(found: FoundModel, listener: Listener) -> "tuple[Prepared, Sequence[int], Path]":
    """The prepared set of a run, its validation rows, and the file of its split.

    Raises:
        UserError: If the model is of no run, or its data are gone.
    """
    from scalestudy.data.store.prepared import Prepared

    if found.run is None:
        raise UserError(
            "--data, or a run, whose own data are known",
            f"{found.path} alone",
            "Name a data set with --data, or the run's folder.",
        )
    files = found.run.point().needed_files()
    try:
        prepared = Prepared.open(files.prepared)
    except UserError as error:
        raise UserError(
            "the prepared data set of the run",
            error.received,
            "Prepare it again (`scalestudy data prepare STUDY`), or name the data with --data.",
        ) from error
    from scalestudy.data.splits.split import Split

    split = Split.load(files.split)
    return prepared, split.validation.tolist(), Path(files.split)


def _data(
    found: FoundModel, source: str | None, split: str | None, listener: Listener
) -> "tuple[Prepared, Sequence[int], str, str]":
    """The set, its rows, their name, and the set's name."""
    from scalestudy.data.splits.split import Split, make_split

    if split is not None and split not in SPLITS:
        raise UserError(f"--split {', '.join(SPLITS)}", repr(split), "Choose one of these.")
    if source is None:
        prepared, _, file = own_data(found, listener)
        rows_of = Split.load(file)
        name, data = split or "validation", str(found.record.data.get("source") or prepared.path)
    else:
        from scalestudy.features.predict.other_data import prepared_like

        prepared = prepared_like(found.record, source, listener)
        name, data = split or "all", source
        rows_of = make_split(prepared, None, int(found.record.data.get("seed", 0)))
        if found.run is not None and _same_data(found, prepared):
            listener.note(f"{source} is what the model was trained on: its training samples are among these.")
        if name in ("train", "validation", "test") and name not in prepared.given:
            raise UserError(
                f"data that bring a {name} set",
                f"{source}, which brings {', '.join(prepared.given) or 'none'}",
                "Leave --split out to evaluate all of it.",
            )
    rows = range(prepared.count) if name == "all" else getattr(rows_of, name)
    if name == "test" and not len(rows) and rows_of.quality_split == "test":
        rows = rows_of.validation
    if not len(rows):
        raise UserError(
            f"samples in the {name} set of {data}",
            "none",
            f"Choose another --split out of {', '.join(SPLITS)}.",
        )
    return prepared, rows, name, data


def _same_data(found: FoundModel, prepared: "Prepared") -> bool:
    from scalestudy.data.store.prepared import Prepared

    assert found.run is not None
    files = found.run.point().files
    try:
        return files is not None and Prepared.open(files.prepared).fingerprint == prepared.fingerprint
    except UserError:
        return False


def _done(folder: Path) -> int:
    return sum(int(file.read_text() or 0) for file in folder.glob("progress-*"))
