"""The study of a script's runs, and the records of a run, which rank 0 writes.

The study has one folder for each version of the script's text, and one point for each setting. The user
writes no study file: launching the script with another number of workers, another seed or other arguments
adds points to the study.
"""

import datetime
import hashlib
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.config.expand import point_name
from scalestudy.config.file import Study, SweepSettings
from scalestudy.config.metric_senses import Better, Sense, gain, known
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
from scalestudy.features.launch.join import ARGUMENTS as GIVEN
from scalestudy.features.launch.join import FOLDER, OUT, SOURCE, WEAK, Start, main_file
from scalestudy.features.launch.shared_work import (
    Share,
    find_grown,
    find_other_set,
    grown_error,
    refuse_apart,
)
from scalestudy.hardware import cores
from scalestudy.measure.clock import PhaseClock
from scalestudy.plugins.strategies import traits
from scalestudy.store.record_file import read_record
from scalestudy.store.records import EpochRecord, Failure, Progress, Result
from scalestudy.store.result_fields import fields_of_point
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.state import read_deciding_run
from scalestudy.store.study_folder import StudyFolder, default_folder
from scalestudy.util.errors import RunError, UserError

TASK = "script:"
"""Prefix of a script's path, in the place of a task's name."""
ARGUMENTS = "script.arguments"
"""Swept key for a script's arguments, in a study whose first run had some."""
PROGRESS_EVERY = 1.0
"""Seconds between two progress records."""


class ScriptText(NamedTuple):
    """The current version of a script: its path, its arguments, and the SHA-256 of its sources."""

    file: Path
    arguments: tuple[str, ...]
    digest: str

    @property
    def swept(self) -> dict[str, Any]:
        """Its arguments as a swept value; empty if it has none."""
        if not self.arguments:
            return {}
        return {ARGUMENTS: shlex.join(self.arguments)}

    @property
    def source(self) -> str:
        """Identifier of the script's code and of the modules it imports, in the place of a data source."""
        return f"sha256:{self.digest}"


def script_text(file: Path, arguments: Sequence[str]) -> ScriptText:
    """Read the current version of a script."""
    sources = json.dumps(digests(source_files(str(file.absolute()))), sort_keys=True)
    return ScriptText(
        file.absolute(),
        tuple(arguments),
        hashlib.sha256(sources.encode()).hexdigest(),
    )


def script_here() -> ScriptText:
    """Return the script that this process runs; raises `UserError` if it runs no script.

    The launcher has read its version: a script may have changed `sys.path` since, and so what it imports.
    """
    file = main_file()
    if file is None or not file.is_file():
        raise UserError(
            "a script in a file",
            "none",
            "Save the code to a file, and run that.",
        )
    if GIVEN not in os.environ:
        arguments = sys.argv[1:]
    else:
        arguments = shlex.split(os.environ[GIVEN])
    if SOURCE in os.environ:
        return ScriptText(file.absolute(), tuple(arguments), os.environ[SOURCE])
    return script_text(file, arguments)


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
        return StudyFolder.open(path).updated(
            lambda study, points: _grown(study, [*points, point])
        )
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
        if planned:
            point = point.on(oversubscribed=planned.oversubscribed)
            point = point.model_copy(
                update={"place": planned.place, "blocks": planned.blocks}
            )
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
    other: dict[str, list[Any]] = {}
    for point in known:
        for name in point.swept:
            if name not in other:
                # A run without arguments counts as one with empty ones.
                values = [point.swept.get(name, "") for point in known]
                other[name] = list(dict.fromkeys(values))
    sweep = SweepSettings(
        strategy=tuple(dict.fromkeys(point.strategy for point in known)),
        workers=tuple(sorted({point.workers for point in known})),
        seed=tuple(sorted({point.seed for point in known})),
        other=other,
    )
    study = study.model_copy(update={"sweep": sweep})
    text = (
        "# Runs of a script of its own: `scalestudy launch` adds to them, `scalestudy run` does not.\n"
        f"# {study.task.removeprefix(TASK)}, {study.data.source}\n"
    )
    return study, list(named.values()), text


def _belongs(path: Path, script: ScriptText) -> bool:
    """Return whether a folder has runs of this version of a script, with any arguments."""
    try:
        folder = StudyFolder.open(path)
    except UserError:
        return False
    return (folder.study.task, folder.study.data.source) == (
        f"{TASK}{script.file}",
        script.source,
    )


Qualities = dict[str, tuple[float, float]]
"""Numerator and denominator by name of the metric."""


@dataclass
class EpochCounts:
    """The measurements of one worker in an epoch.

    Attributes:
        most: Samples in its largest step.
        seconds: Training time.
        wall: Time of the whole epoch.
        cpu_seconds: CPU time of the process during training.
        loss: Sum of the losses of its samples; None if the script reports none.
        shared: Whether samples and loss are those of all replicas of a strategy.
        joined: Workers whose gradients the script combines with this one's; None if unknown.
        digest: Hash of the model's parameters after the first epoch; "" later, or without a model.
    """

    samples: int = 0
    steps: int = 0
    most: int = 0
    seconds: float = 0.0
    wall: float = 0.0
    cpu_seconds: float = 0.0
    loss: Any = None
    qualities: Qualities = field(default_factory=dict)
    shared: bool = False
    joined: int | None = None
    digest: str = ""

    @property
    def share(self) -> Share:
        """Its part of the work."""
        if self.loss is not None and self.samples:
            loss = self.loss / self.samples
        else:
            loss = None
        return Share(self.samples, self.steps, loss, self.shared, self.joined)


@dataclass
class Left:
    """The state of a worker at the end.

    Attributes:
        digest: Hash of the model's parameters, "" without a model.
    """

    host: str
    qualities: Qualities
    peak_memory: int
    cpu_percent: float
    digest: str
    parameters: int | None
    communication: str | None


def _mean_loss(by_rank: Sequence[EpochCounts]) -> float | None:
    """Loss of an epoch, a mean over its samples; None if a worker that has some reports none."""
    losses = [counts.loss for counts in by_rank if counts.samples]
    if None in losses:
        return None
    mean: float = sum(losses) / sum(counts.samples for counts in by_rank)
    return mean


class Recording:
    """A run of a script, from its first epoch to its result; `epochs` is the planned number."""

    def __init__(
        self,
        study: StudyFolder,
        run: RunFolder,
        epochs: int,
        clock: PhaseClock,
    ) -> None:
        self._clock, self._epochs = clock, epochs
        self._study, self.run = study, run
        self._point = run.point()  # with what the launcher knows of it
        self._records: list[EpochRecord] = []
        self._most: list[int] = []
        self._senses: dict[str, Better | None] = {}
        self._evaluated: dict[str, float] = {}
        self._began = self._written = time.time()
        self._progress = Progress(
            phase="training",
            epoch=1,
            epochs=epochs,
            step=0,
            steps=0,
            updated=0,
        )

    @classmethod
    def begin(
        cls,
        start: Start,
        seed: int,
        epochs: int,
        clock: PhaseClock,
    ) -> "Recording":
        """Begin a run of this script in the folder of its study, which is made if there is none yet."""
        script = script_here()
        point = point_of(start, script, seed)
        study = measured_folder(script, point, os.environ.get(OUT))
        run = run_of(study, point, os.environ.get(FOLDER))
        return cls(study, run, epochs, clock)

    def sense(self, name: str, better: Better | None) -> None:
        """Record the direction of a metric. The first metric is the quality."""
        self._senses[name] = better or self._senses.get(name) or _known(name).better

    def step(self, samples: int, steps: int) -> None:
        """Record progress: the approximate samples of all workers and the steps done in this epoch."""
        now = time.time()
        if now - self._written >= PROGRESS_EVERY:
            self._written = now
            last = 0
            if self._records:
                last = self._records[-1].steps
            self._progress = self._progress.model_copy(
                update={
                    "step": steps,
                    "steps": max(last, steps),
                    "throughput": samples / (now - self._began),
                }
            )
            self.run.write_progress(self._progress.model_copy(update={"updated": now}))

    def epoch(self, by_rank: Sequence[EpochCounts]) -> None:
        """Record an epoch that has ended on all workers. An epoch without samples is ignored.

        Raises:
            RunError: In the first epoch, if the workers do not share the work.
        """
        if not self._records:
            self._refuse_unshared(by_rank)
            for note in _notes(by_rank):
                print(f"scalestudy: {note}", file=sys.stderr, flush=True)
        samples = sum(counts.samples for counts in by_rank)
        if not samples:
            return
        # Every step waits for the slowest worker.
        seconds = max(counts.seconds for counts in by_rank)
        before = sum(record.train_seconds for record in self._records)
        qualities = [counts.qualities for counts in by_rank]
        record = EpochRecord(
            epoch=len(self._records) + 1,
            steps=max(counts.steps for counts in by_rank),
            samples=samples,
            loss=_mean_loss(by_rank),
            train_seconds=seconds,
            evaluation_seconds=by_rank[0].wall - by_rank[0].seconds,
            elapsed_training_seconds=before + seconds,
            validation=_values(qualities),
        )
        self._records.append(record)
        self._evaluated |= _denominators(qualities)
        most = [counts.most for counts in by_rank]
        self._most = list(map(max, self._most or most, most))
        self._clock.add("training", seconds)
        self._clock.add("evaluation", record.evaluation_seconds)
        self.run.append_epoch(record)
        quality = next(iter(record.validation.values()), self._progress.quality)
        throughput = None
        if seconds:
            throughput = samples / seconds
        now = time.time()
        self._progress = self._progress.model_copy(
            update={
                "epoch": min(record.epoch + 1, self._epochs),
                "step": 0,
                "steps": record.steps,
                "quality": quality,
                "throughput": throughput,
                "updated": now,
                "seconds_left": (now - self._began) * (self._epochs - record.epoch),
            }
        )
        self._began = self._written = now
        self.run.write_progress(self._progress)

    def _refuse_unshared(self, by_rank: Sequence[EpochCounts]) -> None:
        point, samples = self._point, sum(counts.samples for counts in by_rank)
        refuse_apart(
            point.strategy,
            point.workers,
            [counts.share for counts in by_rank],
        )
        if os.environ.get(WEAK):
            return
        for run, other in self._others():
            seen = other.training_samples or 0
            if not find_grown(point.workers, samples, other.workers, seen):
                continue
            if point.workers > other.workers:
                raise grown_error(
                    point.strategy,
                    point.workers,
                    samples,
                    other.workers,
                    seen,
                )
            error = grown_error(
                point.strategy,
                other.workers,
                seen,
                point.workers,
                samples,
            )
            run.withdraw_result(
                Failure(
                    rank=None,
                    exit_code=None,
                    reason=str(error),
                )
            )
            print(
                f"scalestudy: the result of {other.name} is withdrawn. {error}",
                file=sys.stderr,
                flush=True,
            )

    def _evaluated_samples(self, metric: str) -> int | None:
        """Return the samples behind a metric, and warn if another run measured it on others."""
        samples = round(self._evaluated.get(metric, 0))
        workers = self._point.workers
        for _, other in self._others():
            seen = other.evaluated_samples
            comparable = samples and seen and other.metric == metric
            if comparable and find_other_set(
                workers,
                samples,
                other.workers,
                seen or 0,
            ):
                print(
                    f"scalestudy: {metric} is of {samples:,} samples, and of {seen:,} in {other.name}, so "
                    "their quality cannot be compared. Evaluate the whole set on each worker, or a share of "
                    "it without drop_remainder.",
                    file=sys.stderr,
                    flush=True,
                )
        return samples or None

    def _others(self) -> Iterator[tuple[RunFolder, Result]]:
        """Yield the finished runs of this script with the same arguments."""
        for point in self._study.points():
            if point.swept != self._point.swept:
                continue
            found = read_deciding_run(self._study.runs(point.name))
            if found is not None and found.result is not None:
                yield found.run, found.result

    def result(self, left: Sequence[Left]) -> None:
        """Write the result of the run.

        Raises:
            RunError: If no step was counted, or the workers' models differ.
        """
        records = self._records
        if not records:
            raise RunError(
                "an epoch with at least one step",
                "none",
                "Call workers.count(samples) after each step.",
            )
        digests = {one.digest for one in left}
        if len(digests) != 1:
            raise RunError(
                "equal parameters on all workers at the end of the script",
                f"{len(digests)} different sets on {len(left)} workers",
                f"Each worker trained its own model. Write {self._point.traits.join_line}.",
            )
        steady = records[1:]
        seconds = sum(record.train_seconds for record in steady)
        last: dict[str, float] = {}
        for record in records:
            last |= record.validation
        last |= _values([one.qualities for one in left])
        self._evaluated |= _denominators([one.qualities for one in left])
        metric = next(iter(self._senses), "")
        sense = Sense(self._senses.get(metric), _known(metric).bounded)
        quality = last.get(metric)
        values = []
        for record in records:
            if metric in record.validation:
                values.append((record.validation[metric], record.epoch))
        best = _best(values, sense)
        best_quality, best_epoch = quality, None
        if best is not None:
            best_quality, best_epoch = best
        throughput = None
        if seconds:
            throughput = sum(record.samples for record in steady) / seconds
        self._point = with_facts(
            self._study,
            self._point,
            epochs=len(records),
            batch=max(self._most),
        )
        write_point(self.run.path / "point.json", self._point)
        point = self._point
        result = Result(
            **fields_of_point(point),
            communication=left[0].communication,
            per_worker_batch=-(-max(self._most) * len(self._most) // point.workers),
            global_batch=sum(self._most),
            epochs=len(records),
            updates=sum(record.steps for record in records),
            samples_processed=sum(record.samples for record in records),
            training_samples=max(record.samples for record in records),
            throughput=throughput,
            steady_epochs=len(steady),
            training_seconds=records[-1].elapsed_training_seconds,
            wall_seconds=self._clock.wall,
            phases=self._clock.phases(),
            metric=metric,
            better=sense.better,
            bounded=sense.bounded,
            quality=quality,
            evaluated_samples=self._evaluated_samples(metric),
            validation=last,
            best_quality=best_quality,
            best_epoch=best_epoch,
            parameters=left[0].parameters,
            weights_digest=left[0].digest,
            by_script=True,
            peak_memory_bytes=[one.peak_memory for one in left],
            cpu_percent=[one.cpu_percent for one in left],
            began=self._clock.started,
            hosts=sorted({one.host for one in left}),
            finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
        self.run.write_checksums(result)
        self.run.write_result(result)


def _notes(by_rank: Sequence[EpochCounts]) -> Iterator[str]:
    """Yield mistakes that the first epoch shows, before the others are trained in vain."""
    if len({counts.digest for counts in by_rank}) > 1:
        yield (
            "after the first epoch the workers have different parameters. Wrap the model, as in "
            "DistributedDataParallel(model), unless the script averages it later."
        )
    steps = [counts.steps for counts in by_rank]
    if len(set(steps)) > 1:
        yield (
            f"the workers took {min(steps)} to {max(steps)} steps in the first epoch. Give each as many, as "
            "DistributedSampler does, or they wait for each other or train on their own."
        )


def _known(name: str) -> Sense:
    """Look up a metric without its prefix: "val_accuracy" and "eval/accuracy" are "accuracy"."""
    return known(re.sub(r"^(val|valid|validation|eval|test)[_/]", "", name))


def _values(given: Sequence[Qualities]) -> dict[str, float]:
    """Return each metric: the sum of the workers' numerators over that of their denominators."""
    values = {}
    for name in _names(given):
        numerators, denominators = _pairs(given, name)
        total = sum(denominators)
        values[name] = float("nan")
        if total:
            values[name] = sum(numerators) / total
    return values


def _names(given: Sequence[Qualities]) -> list[str]:
    """Return the names of the metrics, in the order of their first worker."""
    names: dict[str, None] = {}
    for qualities in given:
        names |= dict.fromkeys(qualities)
    return list(names)


def _pairs(given: Sequence[Qualities], name: str) -> tuple[list[float], list[float]]:
    """Return the numerators and the denominators of a metric, of the workers that have it."""
    numerators, denominators = [], []
    for qualities in given:
        if name in qualities:
            numerators.append(qualities[name][0])
            denominators.append(qualities[name][1])
    return numerators, denominators


def _denominators(given: Sequence[Qualities]) -> dict[str, float]:
    """Return the sum of the workers' denominators of each metric that counts samples."""
    totals: dict[str, float] = {}
    for name in _names(given):
        _, parts = _pairs(given, name)
        # 1 stands for a metric without a denominator.
        if max(parts) > 1:
            totals[name] = sum(parts)
    return totals


def _best(
    values: Sequence[tuple[float, int]], sense: Sense
) -> tuple[float, int] | None:
    """Return the best value and its first epoch; the last value if the better direction is unknown."""
    if not values:
        return None
    if sense.better is None:
        return values[-1]
    better = sense.better
    return max(values, key=lambda pair: (gain(pair[0], better), -pair[1]))
