"""The study of a script's runs: one folder for each version of its text, one point for each setting.

The user writes no study file. Launching the script with another number of workers, another seed or other
arguments adds points to the study.
"""

import hashlib
import itertools
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from scalestudy.config.task_sources import digests, source_files
from scalestudy.features.scripts.join import Start, main_file
from scalestudy.hardware import cores
from scalestudy.plugins.strategies import traits
from scalestudy.store.record_file import read_record
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder, default_folder
from scalestudy.util.errors import UserError

TASK = "script:"
"""Prefix of a script's path, in the place of a task's name."""
ARGUMENTS = "script.arguments"
"""Swept key for a script's arguments, in a study whose first run had some."""


class ScriptText(NamedTuple):
    """The current version of a script: its path, its arguments, and the SHA-256 of its sources."""

    file: Path
    arguments: tuple[str, ...]
    digest: str

    @property
    def swept(self) -> dict[str, Any]:
        """Its arguments as a swept value; empty if it has none."""
        return {ARGUMENTS: shlex.join(self.arguments)} if self.arguments else {}

    @property
    def source(self) -> str:
        """Identifier of the script's code and of the modules it imports, in the place of a data source."""
        return f"sha256:{self.digest}"


def script_text(file: Path, arguments: Sequence[str]) -> ScriptText:
    """Read the current version of a script."""
    sources = json.dumps(digests(source_files(str(file.absolute()))), sort_keys=True)
    return ScriptText(file.absolute(), tuple(arguments), hashlib.sha256(sources.encode()).hexdigest())


def script_here() -> ScriptText:
    """Return the script that this process runs; raises `UserError` if it runs no script."""
    file = main_file()
    if file is None or not file.is_file():
        raise UserError("a script in a file", "none", "Save the code to a file, and run that.")
    return script_text(file, sys.argv[1:])


def measured_point(script: ScriptText, strategy: str, workers: int, seed: int, terms: Terms) -> Point:
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


def folder_of(script: ScriptText, point: Point, out: str | None) -> StudyFolder:
    """Create the folder of a script's study, or add this point to it.

    Raises:
        UserError: If `out` holds anything else, or cannot be written to.
    """
    path = folder_path(script, out)
    if path.exists():
        return StudyFolder.open(path).updated(lambda study, points: _grown(study, [*points, point]))
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
    base = default_folder(Path("script.toml"), script.file.stem)
    numbered = (base if number == 1 else Path(f"{base}-{number}") for number in itertools.count(1))
    return next(path for path in numbered if not path.exists() or _belongs(path, script))


def run_of(folder: StudyFolder, point: Point, launched: str | None) -> RunFolder:
    """Create a run of the point, and write its path into `launched`, the folder of `scalestudy launch`."""
    if launched:
        place = Path(launched)
        planned = read_record(place / "point.json", Point).record
        if planned:
            point = point.on(oversubscribed=planned.oversubscribed)
            point = point.model_copy(update={"turn": planned.turn})
    run = folder.new_run(point)
    if launched:
        (place / "run").write_text(str(run.path.absolute()))
    return run


def with_facts(folder: StudyFolder, point: Point, *, epochs: int, batch: int) -> Point:
    """Set the number of epochs and the batch that the script actually used, in the point and its study."""
    train = point.train.model_copy(update={"epochs": epochs, "batch_size": batch})
    point = point.model_copy(update={"train": train})
    folder.updated(
        lambda study, points: _grown(
            study.model_copy(
                update={"train": study.train.model_copy(update={"epochs": epochs, "batch_size": batch})}
            ),
            [point if other.name == point.name else other for other in points],
        )
    )
    return point


def _study(name: str, point: Point) -> Study:
    return Study(
        name=name,
        task=point.task,
        engine=(point.engine,),
        data=DataSettings(source=point.data.source),
        train=TrainSettings(learning_rate_scaling="none"),
        launch=LaunchSettings(device=point.launch.device),
    )


def _grown(study: Study, points: Sequence[Point]) -> tuple[Study, list[Point], str]:
    """Return a study of these points and its text. Of points with equal names, the last is kept."""
    named = {point.name: point for point in points}
    other = {
        name: list(dict.fromkeys(point.swept[name] for point in named.values()))
        for name in dict.fromkeys(name for point in named.values() for name in point.swept)
    }
    sweep = SweepSettings(
        strategy=tuple(dict.fromkeys(point.strategy for point in named.values())),
        workers=tuple(sorted({point.workers for point in named.values()})),
        seed=tuple(sorted({point.seed for point in named.values()})),
        other=other,
    )
    study = study.model_copy(update={"sweep": sweep})
    text = (
        "# Runs of a script of its own: `scalestudy launch` adds to them, `scalestudy run` does not.\n"
        f"# {study.task.removeprefix(TASK)}, {study.data.source}\n"
    )
    return study, list(named.values()), text


def _belongs(path: Path, script: ScriptText) -> bool:
    """Return whether a folder has runs of this version of a script, all with or all without arguments."""
    try:
        folder = StudyFolder.open(path)
    except UserError:
        return False
    same = (folder.study.task, folder.study.data.source) == (f"{TASK}{script.file}", script.source)
    return same and bool(folder.study.sweep.other) == bool(script.arguments)
