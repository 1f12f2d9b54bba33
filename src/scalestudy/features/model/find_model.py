"""Find a trained model: of a run, or of the best run of a study."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.app.selection import match_points
from scalestudy.config.metric_senses import gain, known
from scalestudy.config.parse import load_study
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.permission import NOTHING, Permission, permit_task
from scalestudy.store.records import Result
from scalestudy.store.run_folder import NAME, RunFolder
from scalestudy.store.study_folder import StudyFolder, default_folder
from scalestudy.util.errors import UserError

WEIGHTS = ("last", "best")
RECORDS = ("result.json", "point.json", "model.json", "best.json")
"""Records by which a model is chosen and loaded."""


@dataclass(frozen=True)
class FoundModel:
    """A model to use: its file, its record, and a label for display."""

    path: Path
    record: "ModelRecord"
    label: str
    run: "RunFolder"
    notes: tuple[str, ...] = ()
    """Remarks on the choice."""
    environment: str | None = None
    """Virtual environment that the user has named to compute in; None for that of this process."""


def find_model(
    path: Path,
    *,
    point: str | None = None,
    weights: str = "last",
    permission: Permission = NOTHING,
) -> FoundModel:
    """Find a model.

    `path` is the folder of a run, point or study, or a study file. For a study, the best run is chosen unless
    `point` names a point. `weights` are those of the "last" or the "best" epoch. Without a `permission`, only
    code that this user has trained with may run; the record of the model has task "" if none may.

    Raises:
        UserError: If there is no model, or its files are not as its run has left them.
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
                "a study that has been run",
                f"{file}, without {path}",
                f"Run it first: scalestudy run {file}",
            )
    if point is not None and not (path / "study.json").exists():
        raise UserError(
            "a study's folder with --point",
            f"{path}",
            "Leave out --point, or name the study.",
        )
    folders = [folder for folder in path.glob("run-*") if NAME.fullmatch(folder.name)]
    runs = sorted(map(RunFolder, folders), key=lambda run: run.number)
    if (path / "study.json").exists():
        found = _of_run(*_of_study(path, point), weights)
    elif (path / "point.json").exists():
        found = _of_run(RunFolder(path), (), weights)
    elif runs:
        found = _of_run(_newest(runs, path), (), weights)
    else:
        raise UserError(
            "a run's folder or a study's",
            f"{path}, which is neither",
            "Name a folder with point.json or study.json.",
        )
    if altered := found.run.altered((*RECORDS, found.path.name)):
        raise UserError(
            f"the files of {found.run.path} as its run has left them",
            altered,
            "Restore them from a backup; `scalestudy status --verify` lists all damage.",
        )
    record, notes = found.record, found.notes
    code = permit_task(record.task, record.task_checksum, permission)
    recorded = None
    if (found.run.path / "point.json").exists():
        recorded = found.run.point().environment
    # A study is data: an environment that it names may hold any code, so only the user chooses it.
    if recorded and permission.environment is None:
        notes += (
            f"Computed by this Python. The record names {recorded}: --environment takes it.",
        )
    return replace(
        found,
        record=record.model_copy(update={"task": code.task}),
        notes=(*notes, *code.notes),
        environment=permission.environment_path,
    )


def _of_run(run: RunFolder, notes: tuple[str, ...], weights: str) -> FoundModel:
    record = run.model_record()
    if record is None:
        raise UserError(
            "a run with a record of its model (model.json)",
            f"{run.path}, without it",
            "Run the study again.",
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
        if result is None:
            why = "which is not done yet"
        elif result.by_script:
            why = "whose script keeps its own model"
        else:
            why = f"without a model: {result.model_missing}"
        hint = ""
        if best and run.best.exists():
            hint = " Its best epoch so far: --weights best."
        raise UserError(
            "a run with a trained model",
            f"{run.path}, {why}",
            f"Run the study again.{hint}",
        )
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
        finished: list[tuple[float, RunFolder]] = []
        for run in reversed(study.runs(name)):
            result = run.result()
            if result is None:
                continue
            if result.by_script:
                raise UserError(
                    "a study whose runs keep their models",
                    f"{folder}, whose script keeps its own model",
                    "Load the script's model with the library that saved it.",
                )
            if run.model.exists():
                finished.append((_gain(result), run))
        # Of a point that was trained again, the newest run counts.
        done += finished[:1]
    if not done:
        raise UserError(
            "a study with a finished run",
            f"{folder}, without any",
            "Run it first: `scalestudy run`.",
        )
    run = max(done, key=lambda pair: pair[0])[1]
    note = f"The best of {len(done)} runs is {run.path.parent.name}; --point NAME takes another."
    if len(done) == 1:
        return run, ()
    return run, (note,)


def _gain(result: Result) -> float:
    if result.quality is None or not math.isfinite(result.quality):
        return -math.inf
    return gain(
        result.quality, result.better or known(result.metric).better or "higher"
    )


def _newest(runs: Sequence[RunFolder], where: Path) -> RunFolder:
    """Return the newest finished run, or else the newest run."""
    if not runs:
        raise UserError(
            "a point with a run",
            f"{where}, without runs",
            "Run the study first.",
        )
    return next((run for run in reversed(runs) if run.result() is not None), runs[-1])
