"""The study of a script's runs.

The study has one folder for each version of the script's text, and one point for each setting. The user
writes no study file: launching the script with another number of workers, another seed or other arguments
adds points to the study.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalestudy.config.expand import point_name
from scalestudy.config.file import Study, SweepSettings
from scalestudy.config.point import Point, Terms
from scalestudy.config.settings import (
    DataSettings,
    LaunchSettings,
    ResolvedData,
    ResolvedLaunch,
    ResolvedTrain,
    TrainSettings,
)
from scalestudy.features.launch.join import Start
from scalestudy.features.launch.script_text import ScriptText
from scalestudy.hardware import cores
from scalestudy.plugins.strategies import traits
from scalestudy.store.record_file import read_record
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder, default_folder
from scalestudy.util.errors import UserError

TASK = "script:"
"""Prefix of a script's path, in the place of a task's name."""


def measured_point(
    script: ScriptText,
    strategy: str,
    workers: int,
    seed: int,
    terms: Terms,
) -> Point:
    """Return a point of a script's study. Its training settings are placeholders until `with_facts`."""
    return Point(
        name=point_name(strategy, workers, seed, script.swept),
        study=script.file.stem,
        task=f"{TASK}{script.file}",
        engine=traits(strategy).engine,
        strategy=strategy,
        workers=workers,
        seed=seed,
        swept=script.swept,
        data=ResolvedData(source=script.source),
        # Only the script knows these; `with_facts` sets the epochs and the batch that it has used.
        train=ResolvedTrain(
            epochs=1,
            batch_size=1,
            optimizer="sgd",
            learning_rate=1.0,
            schedule="constant",
            learning_rate_scaling="none",
        ),
        terms=terms,
    )


def point_of(start: Start, script: ScriptText, seed: int) -> Point:
    """Return the point that these processes compute."""
    launch = ResolvedLaunch(device=start.device, cpus_per_worker=len(cores.granted()))
    terms = Terms(implementation=start.strategy, launch=launch)
    return measured_point(script, start.strategy, start.workers, seed, terms)


def measured_folder(script: ScriptText, point: Point, out: str | None) -> StudyFolder:
    """Create the folder of a script's study, or add this point to it.

    Raises:
        UserError: If `out` holds anything else, or cannot be written to.
    """
    path = folder_path(script, out)
    if path.exists():

        def add(
            study: Study, points: Sequence[Point]
        ) -> tuple[Study, list[Point], str]:
            return _grown(study, [*points, point])

        return StudyFolder.open(path).updated(add)
    study, points, text = _grown(_study(path.name, point), [point])
    return StudyFolder.create_or_open(path, study, points, text)


def folder_path(script: ScriptText, out: str | None) -> Path:
    """Return the folder of a script's study: `studies/train`, or `studies/train-2` after a change.

    Raises:
        UserError: If `out` belongs to another script or to an earlier version of this one.
    """
    if out:
        path = Path(out)
        if path.exists() and not _belongs(path, script):
            raise UserError(
                f"a folder for runs of this version of {script.file.name}",
                f"{path}, which holds something else, or runs of another version",
                "Name another with --out.",
            )
        return path
    # Where a study file of this name would have its results.
    base = default_folder(Path("script.toml"), script.file.stem)
    path = base
    number = 1
    # Another version of the script has a study of its own: its runs are not to be compared.
    while path.exists() and not _belongs(path, script):
        number += 1
        path = Path(f"{base}-{number}")
    return path


def run_of(folder: StudyFolder, point: Point, launched: str | None) -> RunFolder:
    """Create a run of the point, and write its path into `launched`, the folder of `scalestudy launch`."""
    if launched:
        place = Path(launched)
        planned = read_record(place / "point.json", Point).record
        # Only the launcher knows who else uses these cores, and the place of this run among those of a sweep.
        if planned:
            point = point.on(oversubscribed=planned.oversubscribed)
            of_sweep = {"place": planned.place, "blocks": planned.blocks}
            point = point.model_copy(update=of_sweep)
    run = folder.new_run(point)
    if launched:
        (place / "run").write_text(str(run.path.absolute()))
    return run


def with_facts(
    folder: StudyFolder,
    point: Point,
    *,
    epochs: int,
    batch: int,
) -> Point:
    """Set the number of epochs and the batch that the script actually used, in the point and its study."""
    used = {"epochs": epochs, "batch_size": batch}
    train = point.train.model_copy(update=used)
    point = point.model_copy(update={"train": train})

    def change(study: Study, points: Sequence[Point]) -> tuple[Study, list[Point], str]:
        train = study.train.model_copy(update=used)
        changed = []
        for other in points:
            if other.name == point.name:
                changed.append(point)
            else:
                changed.append(other)
        return _grown(study.model_copy(update={"train": train}), changed)

    # Read and written under one lock: other runs of the script may end at the same time.
    folder.updated(change)
    return point


def _study(name: str, point: Point) -> Study:
    return Study(
        name=name,
        task=point.task,
        data=DataSettings(source=point.data.source),
        train=TrainSettings(learning_rate_scaling="none"),
        launch=LaunchSettings(device=point.launch.device),
    )


def _grown(study: Study, points: Sequence[Point]) -> tuple[Study, list[Point], str]:
    """Return a study of these points and its text. Of points with equal names, the last is kept."""
    named = {point.name: point for point in points}
    known = list(named.values())
    swept: dict[str, None] = {}
    for point in known:
        swept |= dict.fromkeys(point.swept)
    other: dict[str, list[Any]] = {}
    for name in swept:
        # A run without arguments counts as one with empty ones.
        values = [point.swept.get(name, "") for point in known]
        other[name] = list(dict.fromkeys(values))
    # No grid: the study's points are those that have been launched.
    strategies: dict[str, None] = {}
    workers = set()
    seeds = set()
    for point in known:
        strategies[point.strategy] = None
        workers.add(point.workers)
        seeds.add(point.seed)
    sweep = SweepSettings(
        strategy=tuple(strategies),
        workers=tuple(sorted(workers)),
        seed=tuple(sorted(seeds)),
        other=other,
    )
    study = study.model_copy(update={"sweep": sweep})
    text = (
        "# Runs of a script of its own: `scalestudy launch` adds to them, `scalestudy run` does not.\n"
        f"# {study.task.removeprefix(TASK)}, {study.data.source}\n"
    )
    return study, known, text


def _belongs(path: Path, script: ScriptText) -> bool:
    """Return whether a folder has runs of this version of a script, with any arguments."""
    try:
        folder = StudyFolder.open(path)
    except UserError:
        return False
    study = folder.study
    if study.task != f"{TASK}{script.file}":
        return False
    return study.data.source == script.source
