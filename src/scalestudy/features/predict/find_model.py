"""Find a trained model: of a run, or of the best run of a study."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.app.selection import match_points
from scalestudy.config.catalog import has_name
from scalestudy.config.objectives import gain, known
from scalestudy.config.parse import load_study
from scalestudy.config.task_sources import was_trained
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.record_file import file_checksum
from scalestudy.store.records import Result
from scalestudy.store.run_folder import NAME, RunFolder
from scalestudy.store.study_folder import StudyFolder, default_folder
from scalestudy.util.errors import UserError

WEIGHTS = ("last", "best")


@dataclass(frozen=True)
class FoundModel:
    """A model to use: its file, its record, and a label for display."""

    path: Path
    record: "ModelRecord"
    label: str
    run: "RunFolder"
    notes: tuple[str, ...] = ()
    """Remarks on the choice."""


def find_model(
    path: Path, *, point: str | None = None, weights: str = "last", task: Path | None = None
) -> FoundModel:
    """Find a model.

    `path` is the folder of a run, point or study, or a study file. For a study, the best run is chosen unless
    `point` names a point. `weights` are those of the "last" or the "best" epoch. `task` is the
    model's task file, whose code may run; otherwise only code that this user has trained with may.

    Raises:
        UserError: If there is no model.
    """
    if weights not in WEIGHTS:
        raise UserError("--weights last or best", repr(weights), "Choose one of these.")
    if not path.exists():
        raise UserError(
            "a run folder or a study",
            f"{path}, which does not exist",
            "Correct the path; `scalestudy status STUDY` lists the runs.",
        )
    if path.suffix == ".toml":
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
        raise UserError(
            "a run's folder or a study's",
            f"{path}, which is neither",
            "Name a folder with point.json or study.json.",
        )
    return _with_code(found, task)


def _with_code(model: FoundModel, task: Path | None) -> FoundModel:
    """Return the model with the task file whose code may run to load it, or with `task=""` in its record.

    Run folders come from anywhere. Their records cannot allow that code runs: only the user
    can, by naming the file or by having trained with it.
    """
    record = model.record
    if has_name(record.task):
        return model
    notes: list[str] = []
    if task is None:
        file = Path(record.task)
        trained = file if file.is_file() and was_trained(file) else None
        if trained is None:
            seen = f"{file}, which" if file.is_file() else f"{file}: it is not there, and"
            notes.append(
                f"The model's own code is not run: {seen} you have not trained with. --task allows it."
            )
    elif not task.is_file():
        raise UserError("a task file", f"{task}, which is no file", "Correct --task.")
    else:
        trained = task.absolute()
    if trained is not None and record.task_checksum not in ("", file_checksum(trained)):
        notes.append(f"Warning: {trained}, whose code loads the model, has changed since it was trained.")
    record = record.model_copy(update={"task": str(trained or "")})
    return replace(model, record=record, notes=(*model.notes, *notes))


def _of_run(run: RunFolder, notes: tuple[str, ...], weights: str) -> FoundModel:
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
            run.best,
            record.model_copy(update={"weights": "best"}),
            f"{name}, epoch {best.epoch} ({best.metric} {best.value:.4g})",
            run,
            notes,
        )
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


def _of_study(folder: Path, point: str | None) -> tuple[RunFolder, tuple[str, ...]]:
    study = StudyFolder.open(folder)
    names = match_points([known.name for known in study.points()], [point or "*"])
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


def _gain(result: Result) -> float:
    if result.quality is None or not math.isfinite(result.quality):
        return -math.inf
    return gain(result.quality, result.better or known(result.metric).better or "higher")


def _newest(runs: Sequence[RunFolder], where: Path) -> RunFolder:
    """Return the newest finished run, or else the newest run."""
    if not runs:
        raise UserError("a point with a run", f"{where}, without runs", "Run the study first.")
    return next((run for run in reversed(runs) if run.result() is not None), runs[-1])
