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
        file = path
        path = default_folder(file, load_study(file).name)
        if not (path / "study.json").exists():
            raise UserError(
                "a study that has been run",
                f"{file}, without {path}",
                f"Run it first: scalestudy run {file}",
            )
    run, notes = _choose_run(path, point)
    found = _of_run(run, notes, weights)
    # Files may come from anyone who can write to the folder: what its run has left is known by its checksums.
    altered = found.run.altered((*RECORDS, found.path.name))
    if altered:
        raise UserError(
            f"the files of {found.run.path} as its run has left them",
            altered,
            "Restore them from a backup; `scalestudy status --verify` lists all damage.",
        )
    record = found.record
    notes = found.notes
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


def _choose_run(path: Path, point: str | None) -> tuple[RunFolder, tuple[str, ...]]:
    """Return the run of a folder of a study, a run or a point, and remarks on the choice."""
    if (path / "study.json").exists():
        return _of_study(path, point)
    if point is not None:
        raise UserError(
            "a study's folder with --point",
            f"{path}",
            "Leave out --point, or name the study.",
        )
    if (path / "point.json").exists():
        return RunFolder(path), ()
    runs = []
    for folder in path.glob("run-*"):
        if NAME.fullmatch(folder.name):
            runs.append(RunFolder(folder))
    if runs:
        # By number: run-10 comes after run-9.
        runs.sort(key=lambda run: run.number)
        return _newest(runs, path), ()
    raise UserError(
        "a run's folder or a study's",
        f"{path}, which is neither",
        "Name a folder with point.json or study.json.",
    )


def _of_run(run: RunFolder, notes: tuple[str, ...], weights: str) -> FoundModel:
    record = run.model_record()
    if record is None:
        raise UserError(
            "a run with a record of its model (model.json)",
            f"{run.path}, without it",
            "Run the study again.",
        )
    # What such a task reads may be no image: only its own code can give its model samples.
    if record.kind == "custom":
        raise UserError(
            "a model of images with masks or classes",
            f"{run.path}, whose task reads its own data",
            f"Load {run.model} with its library and the task file, and feed it the samples of read().",
        )
    if weights == "best":
        return _best_of_run(run, record, notes)
    return _last_of_run(run, record, notes)


def _best_of_run(
    run: RunFolder,
    record: ModelRecord,
    notes: tuple[str, ...],
) -> FoundModel:
    best = run.best_record()
    if best is None or not run.best.exists():
        raise UserError(
            "a run that kept its best epoch",
            f"{run.path}, without {run.best.name}",
            'Use --weights last; keep_best = "none" under [train] keeps none.',
        )
    return FoundModel(
        run.best,
        record.model_copy(update={"weights": "best"}),
        f"{_name(run)}, epoch {best.epoch} ({best.metric} {best.value:.4g})",
        run,
        notes,
    )


def _last_of_run(
    run: RunFolder,
    record: ModelRecord,
    notes: tuple[str, ...],
) -> FoundModel:
    best = run.best_record()
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
    label = _name(run)
    if result is not None:
        label = f"{label}, last epoch ({result.metric} {result.quality:.4g})"
        if best and run.best.exists() and best.epoch != result.epochs:
            more = f"Epoch {best.epoch} was better ({best.metric} {best.value:.4g}): --weights best takes it."
            notes = (*notes, more)
    return FoundModel(run.model, record, label, run, notes)


def _name(run: RunFolder) -> str:
    return f"{run.path.parent.name}/{run.path.name}"


def _of_study(folder: Path, point: str | None) -> tuple[RunFolder, tuple[str, ...]]:
    study = StudyFolder.open(folder)
    all_names = [known.name for known in study.points()]
    names = match_points(all_names, [point or "*"])
    if point is not None and len(names) == 1:
        (name,) = names
        return _newest(study.runs(name), folder / "points" / name), ()
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
    _, run = max(done, key=lambda pair: pair[0])
    if len(done) == 1:
        return run, ()
    note = f"The best of {len(done)} runs is {run.path.parent.name}; --point NAME takes another."
    return run, (note,)


def _gain(result: Result) -> float:
    # A diverged run has no finite quality, and NaN would be neither better nor worse than any.
    if result.quality is None or not math.isfinite(result.quality):
        return -math.inf
    better = result.better or known(result.metric).better or "higher"
    return gain(result.quality, better)


def _newest(runs: Sequence[RunFolder], where: Path) -> RunFolder:
    """Return the newest finished run, or else the newest run."""
    if not runs:
        raise UserError(
            "a point with a run",
            f"{where}, without runs",
            "Run the study first.",
        )
    for run in reversed(runs):
        if run.result() is not None:
            return run
    return runs[-1]
