"""The trained model that somebody means: of a run, the best run of a study, or a file that was exported."""

import math
import zipfile
from dataclasses import dataclass
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
    """A model to use.

    Attributes:
        path: A `.keras` file, or the folder of a SavedModel.
        record: What it is of.
        label: What it is, for people.
        run: Its run; None of an exported model.
        notes: What is worth knowing of the choice.
    """

    path: Path
    record: "ModelRecord"
    label: str
    run: "RunFolder | None" = None
    notes: tuple[str, ...] = ()


def find_model(given: Path, *, point: str | None = None, weights: str = "last") -> FoundModel:
    """The model that is meant.

    Args:
        given: A run's folder, a point's, a study's or its file; a `.keras` file; the folder of a SavedModel.
        point: Name of a point of the study; None takes the best of its runs.
        weights: Of which epoch of a run: "last" or "best".

    Raises:
        UserError: If there is none there.
    """
    if weights not in WEIGHTS:
        raise UserError("--weights last or best", repr(weights), "Choose one of these.")
    if not given.exists():
        raise UserError(
            "a run's folder, a study's, or a model that was exported",
            f"{given}, which does not exist",
            "Correct the path; `scalestudy status STUDY` lists the runs.",
        )
    if given.suffix == ".onnx":
        raise UserError(
            "a model as .keras file or SavedModel",
            f"{given}",
            "ONNX is for other programs: name the run.",
        )
    if given.suffix == ".toml":
        from scalestudy.study.parse import load_study
        from scalestudy.study.store import default_folder

        file, given = given, default_folder(given, load_study(given).name)
        if not (given / "study.json").exists():
            raise UserError(
                "a study that was run", f"{file}, without {given}", f"Run it first: scalestudy run {file}"
            )
    if (given / "study.json").exists():
        run, notes = _of_study(given, point)
        return _of_run(run, weights, notes)
    if point is not None:
        raise UserError("a study's folder with --point", f"{given}", "Leave --point out, or name the study.")
    if (given / "point.json").exists():
        from scalestudy.study.run_folder import RunFolder

        return _of_run(RunFolder(given), weights, ())
    runs = _runs_in(given)
    if runs:
        return _of_run(_newest_done(runs, given), weights, ())
    return _exported(given)


def _of_run(run: "RunFolder", weights: str, notes: tuple[str, ...]) -> FoundModel:
    record = run.model_record() or _of_prepared(run)
    if record.kind == "custom":
        raise UserError(
            "a model of images, with masks or a class each",
            f"{run.path}, of a task that reads its data itself",
            f"Load {run.model} with keras.saving.load_model and the task's file; give it what read() gives.",
        )
    best = run.best_record()
    name = f"{run.path.parent.name}/{run.path.name}"
    if weights == "best":
        if best is None or not run.best.exists():
            raise UserError(
                "a run that has kept its best epoch",
                f"{run.path}, without {run.best.name}",
                'Take --weights last; keep_best = "none" under [train] keeps none, nor did older versions.',
            )
        return FoundModel(
            run.best, record.model_copy(update={"weights": "best"}),
            f"{name}, epoch {best.epoch} ({best.metric} {best.value:.4g})", run, notes,
        )  # fmt: skip
    result = run.result()
    if not run.model.exists():
        why = "which is not done yet" if result is None else f"without a model: {result.model_missing}"
        hint = " Its best epoch so far: --weights best." if best and run.best.exists() else ""
        raise UserError("a run with a trained model", f"{run.path}, {why}", f"Run the study again.{hint}")
    label = name
    if result is not None:
        label = f"{name}, last epoch ({result.metric} {result.quality:.4g})"
        if best and run.best.exists() and best.epoch != result.epochs:
            more = f"Epoch {best.epoch} was better ({best.metric} {best.value:.4g}): --weights best takes it."
            notes = (*notes, more)
    return FoundModel(run.model, record, label, run, notes)


def _of_prepared(run: "RunFolder") -> "ModelRecord":
    """What the models of an older run are of, by its data set."""
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.training.model_file import record_of

    point, result = run.point(), run.result()
    try:
        prepared = Prepared.open(point.needed_files().prepared)
    except UserError as error:
        raise UserError(
            "the record of what a model is of (model.json), or its prepared data set",
            f"neither for {run.path}: {error.received}",
            "Prepare its data again (`scalestudy data prepare STUDY`), or train it again.",
        ) from error
    return record_of(point, prepared, result.metric if result else "")


def _of_study(folder: Path, point: str | None) -> "tuple[RunFolder, tuple[str, ...]]":
    from scalestudy.app.point_names import refuse_unknown_points
    from scalestudy.study.store import StudyFolder

    study = StudyFolder.open(folder)
    if point is not None:
        refuse_unknown_points(study, [point])
        return _newest_done(study.runs(point), folder / "points" / point), ()
    done: list[tuple[float, RunFolder]] = []
    for each in study.points():
        for run in study.runs(each.name)[::-1]:
            result = run.result()
            if result is not None and run.model.exists():
                done.append((_gain(result), run))
                break
    if not done:
        raise UserError(
            "a study with a finished run", f"{folder}, without any", "Run it first: `scalestudy run`."
        )
    run = max(done, key=lambda each: each[0])[1]
    note = f"The best of {len(done)} runs is {run.path.parent.name}; --point NAME takes another."
    return run, (note,) if len(done) > 1 else ()


def _gain(result: "Result") -> float:
    from scalestudy.study.metrics import gain, known

    better = result.better or known(result.metric).better or "higher"
    value = gain(result.quality, better)
    return value if math.isfinite(value) else -math.inf


def _runs_in(folder: Path) -> "list[RunFolder]":
    from scalestudy.study.run_folder import NAME, RunFolder

    runs = [RunFolder(path) for path in folder.glob("run-*") if NAME.fullmatch(path.name)]
    return sorted(runs, key=lambda run: run.number)


def _newest_done(runs: "list[RunFolder]", where: Path) -> "RunFolder":
    for run in reversed(runs):
        if run.result() is not None:
            return run
    if runs:
        return runs[-1]
    raise UserError("a point that was run", f"{where}, without runs", "Run the study first.")


def _exported(given: Path) -> FoundModel:
    """A `.keras` file (of a run as well), or a SavedModel, with its record inside or beside it."""
    from scalestudy.study.engines import engine_names, engine_traits
    from scalestudy.study.model_record import EMBEDDED, ModelRecord
    from scalestudy.study.record_file import read_record

    if given.is_dir() and not (given / "saved_model.pb").exists():
        raise UserError(
            "a run's folder, a study's, or a model that was exported",
            f"{given}, which is none of these",
            "Name a folder with point.json or study.json, a .keras file, or a folder with saved_model.pb.",
        )
    suffixes = {engine_traits(name).model_suffix for name in engine_names()}
    if given.is_file() and given.suffix not in suffixes:
        raise UserError(
            f"a {' or '.join(sorted(suffixes))} file",
            f"{given}",
            "Name a run, or a model written by `scalestudy model export`.",
        )
    inside: ModelRecord | None = None
    try:
        if given.is_dir():
            inside = ModelRecord.model_validate_json((given / EMBEDDED).read_bytes())
        else:
            with zipfile.ZipFile(given) as archive:
                inside = ModelRecord.model_validate_json(archive.read(EMBEDDED))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        pass
    beside = [given.with_name(f"{given.name}.json"), given.with_name("model.json")]
    found = inside or next((r for f in beside if (r := read_record(f, ModelRecord).record)), None)
    if found is None:
        raise UserError(
            "a model with the record of its classes and preprocessing, inside it or beside it",
            f"{given}, without {EMBEDDED} inside and {beside[0].name} beside it",
            "Write it by `scalestudy model export`, or name the run that trained it.",
        )
    return FoundModel(given, found, given.name)
