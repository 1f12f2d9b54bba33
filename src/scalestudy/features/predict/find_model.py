"""Find a trained model: of a run, of the best run of a study, or in an exported file."""

import contextlib
import math
import os
import pwd
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.study.model_record import ModelRecord
    from scalestudy.study.records import Result
    from scalestudy.study.run_folder import RunFolder

WEIGHTS = ("last", "best")


@dataclass(frozen=True)
class FoundModel:
    """A model to use: its file, its record, and a label for display."""

    path: Path
    record: "ModelRecord"
    label: str
    run: "RunFolder | None" = None
    """None for an exported model."""
    notes: tuple[str, ...] = ()
    """Remarks on the choice."""


def find_model(path: Path, *, point: str | None = None, weights: str = "last") -> FoundModel:
    """Find a model.

    `path` is the folder of a run, point or study, a study file, or a model file. For a study, the best run is
    chosen unless `point` names a point. `weights` are those of the "last" or the "best" epoch.

    Raises:
        UserError: If there is no model.
    """
    from scalestudy.study.run_folder import NAME, RunFolder

    if weights not in WEIGHTS:
        raise UserError("--weights last or best", repr(weights), "Choose one of these.")
    if not path.exists():
        raise UserError(
            "a run folder, a study, or an exported model",
            f"{path}, which does not exist",
            "Correct the path; `scalestudy status STUDY` lists the runs.",
        )
    if path.suffix == ".toml":
        from scalestudy.study.parse import load_study
        from scalestudy.study.store import default_folder

        file, path = path, default_folder(path, load_study(path).name)
        if not (path / "study.json").exists():
            raise UserError(
                "a study that has been run", f"{file}, without {path}", f"Run it first: scalestudy run {file}"
            )
    if point is not None and not (path / "study.json").exists():
        raise UserError("a study's folder with --point", f"{path}", "Leave out --point, or name the study.")
    runs = [RunFolder(folder) for folder in path.glob("run-*") if NAME.fullmatch(folder.name)]
    if (path / "study.json").exists():
        found = _of_run(*_of_study(path, point), weights)
    elif (path / "point.json").exists():
        found = _of_run(RunFolder(path), (), weights)
    elif runs:
        found = _of_run(_newest(sorted(runs, key=lambda run: run.number), path), (), weights)
    else:
        found = _of_file(path)
    found = _with_moved_task(found)
    return replace(found, notes=(*found.notes, *_task_warnings(found)))


def _with_moved_task(model: FoundModel) -> FoundModel:
    """Return the model with its task file in a folder around its run, if both were moved together."""
    from scalestudy.study.catalog import has_name
    from scalestudy.study.record_file import file_checksum

    record = model.record
    if model.run is None or has_name(record.task) or Path(record.task).exists():
        return model
    for folder in model.run.path.absolute().parents:
        moved = folder / Path(record.task).name
        if moved.is_file() and file_checksum(moved) == record.task_checksum:
            return replace(model, record=record.model_copy(update={"task": str(moved)}))
    return model


def _task_warnings(model: FoundModel) -> Iterator[str]:
    """Yield warnings about the task file, whose code runs when the model is loaded."""
    from scalestudy.study.catalog import has_name
    from scalestudy.study.record_file import file_checksum

    task, recorded = model.record.task, model.record.task_checksum
    if has_name(task) or not Path(task).is_file():
        return
    owner = Path(task).stat().st_uid
    if owner not in (model.path.stat().st_uid, os.getuid(), 0):
        name = str(owner)
        with contextlib.suppress(KeyError):
            name = pwd.getpwuid(owner).pw_name
        yield f"Warning: {task}, whose code loads the model, belongs to {name}, who has not trained it."
    if recorded and file_checksum(Path(task)) != recorded:
        yield f"Warning: {task}, whose code loads the model, has changed since it was trained."


def _of_run(run: "RunFolder", notes: tuple[str, ...], weights: str) -> FoundModel:
    record = run.model_record()
    if record is None:
        raise UserError(
            "a run with a record of its model (model.json)", f"{run.path}, without it", "Run the study again."
        )
    if record.kind == "custom":
        raise UserError(
            "a model of images with masks or classes",
            f"{run.path}, whose task reads its own data",
            f"Load {run.model} with its library and the task file, and feed it the samples of read().",
        )
    best = run.best_record()
    name = f"{run.path.parent.name}/{run.path.name}"
    if weights == "best":
        if best is None or not run.best.exists():
            raise UserError(
                "a run that kept its best epoch",
                f"{run.path}, without {run.best.name}",
                'Use --weights last; keep_best = "none" under [train] keeps none.',
            )
        return FoundModel(
            run.best, record.model_copy(update={"weights": "best"}),
            f"{name}, epoch {best.epoch} ({best.metric} {best.value:.4g})", run, notes,
        )  # fmt: skip
    result = run.result()
    if not run.model.exists():
        why = "which is not done yet" if result is None else f"without a model: {result.model_missing}"
        if result is not None and result.by_script:
            why = "whose script keeps its own model"
        hint = " Its best epoch so far: --weights best." if best and run.best.exists() else ""
        raise UserError("a run with a trained model", f"{run.path}, {why}", f"Run the study again.{hint}")
    label = name
    if result is not None:
        label = f"{name}, last epoch ({result.metric} {result.quality:.4g})"
        if best and run.best.exists() and best.epoch != result.epochs:
            more = f"Epoch {best.epoch} was better ({best.metric} {best.value:.4g}): --weights best takes it."
            notes = (*notes, more)
    return FoundModel(run.model, record, label, run, notes)


def _of_study(folder: Path, point: str | None) -> "tuple[RunFolder, tuple[str, ...]]":
    from scalestudy.app.selection import named_points
    from scalestudy.study.store import StudyFolder

    study = StudyFolder.open(folder)
    names = named_points([known.name for known in study.points()], [point or "*"])
    if point is not None and len(names) == 1:
        return _newest(study.runs(names[0]), folder / "points" / names[0]), ()
    done: list[tuple[float, RunFolder]] = []
    for name in names:
        runs = list(reversed(study.runs(name)))
        if any(result.by_script for run in runs if (result := run.result()) is not None):
            raise UserError(
                "a study whose runs keep their models",
                f"{folder}, whose script keeps its own model",
                "Load the script's model with the library that saved it.",
            )
        runs = [run for run in runs if run.model.exists()]
        finished = [(_gain(result), run) for run in runs if (result := run.result()) is not None]
        done += finished[:1]
    if not done:
        raise UserError(
            "a study with a finished run", f"{folder}, without any", "Run it first: `scalestudy run`."
        )
    run = max(done, key=lambda pair: pair[0])[1]
    note = f"The best of {len(done)} runs is {run.path.parent.name}; --point NAME takes another."
    return run, (note,) if len(done) > 1 else ()


def _gain(result: "Result") -> float:
    from scalestudy.study.metrics import gain, known

    if result.quality is None or not math.isfinite(result.quality):
        return -math.inf
    return gain(result.quality, result.better or known(result.metric).better or "higher")


def _newest(runs: "Sequence[RunFolder]", where: Path) -> "RunFolder":
    """Return the newest finished run, or else the newest run."""
    if not runs:
        raise UserError("a point with a run", f"{where}, without runs", "Run the study first.")
    return next((run for run in reversed(runs) if run.result() is not None), runs[-1])


def _of_file(path: Path) -> FoundModel:
    """Return the model in a file of a run or an export, with its record from inside or next to the file."""
    from scalestudy.study.engines import engine_names, engine_traits
    from scalestudy.study.model_record import EMBEDDED, ModelRecord
    from scalestudy.study.record_file import read_record

    suffixes = sorted({suffix for name in engine_names() for suffix in engine_traits(name).model_suffixes})
    if not path.is_file() or path.suffix not in suffixes:
        raise UserError(
            f"a run's folder, a study's, or a model's file ({' or '.join(suffixes)})",
            f"{path}, which is none of these",
            "Name a folder with point.json or study.json, or a file from `scalestudy model export`.",
        )
    record: ModelRecord | None = None
    with (
        contextlib.suppress(OSError, KeyError, ValueError, zipfile.BadZipFile),
        zipfile.ZipFile(path) as file,
    ):
        record = ModelRecord.model_validate_json(file.read(EMBEDDED))
    for name in (f"{path.name}.json", "model.json"):
        record = record or read_record(path.with_name(name), ModelRecord).record
    if record is None:
        raise UserError(
            "a model with a record of its classes and preprocessing, inside it or next to it",
            f"{path}, without {EMBEDDED} inside or {path.name}.json next to it",
            "Write it with `scalestudy model export`, or name the run that trained it.",
        )
    return FoundModel(path, record, path.name)
