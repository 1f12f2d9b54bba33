"""The records of a script's run, which rank 0 writes."""

import datetime
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalestudy.config.metric_senses import Better, Sense
from scalestudy.features.launch.join import FOLDER, OUT, WEAK, Start
from scalestudy.features.launch.measured_study import (
    measured_folder,
    point_of,
    run_of,
    with_facts,
)
from scalestudy.features.launch.script_text import script_here
from scalestudy.features.launch.shared_work import (
    Share,
    find_grown,
    find_other_set,
    grown_error,
    refuse_apart,
)
from scalestudy.features.launch.worker_qualities import (
    Qualities,
    combine_metrics,
    find_best,
    sense_of_name,
    sum_denominators,
)
from scalestudy.measure.clock import PhaseClock
from scalestudy.store.records import EpochRecord, Failure, Progress, Result
from scalestudy.store.result_fields import fields_of_point
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.state import read_deciding_run
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError

PROGRESS_EVERY = 1.0
"""Seconds between two progress records."""


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
        loss = None
        if self.loss is not None and self.samples:
            loss = self.loss / self.samples
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
    mean: float = sum(losses) / _samples_of(by_rank)
    return mean


def _samples_of(by_rank: Sequence[EpochCounts]) -> int:
    return sum(counts.samples for counts in by_rank)


class Recording:
    """A run of a script, from its first epoch to its result; `epochs` is the planned number."""

    def __init__(
        self,
        study: StudyFolder,
        run: RunFolder,
        epochs: int,
        clock: PhaseClock,
    ) -> None:
        self.run = run
        self._study = study
        self._clock = clock
        self._epochs = epochs
        # Read again: `run_of` has added what the launcher knows of it.
        self._point = run.point()
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
        self._senses[name] = (
            better or self._senses.get(name) or sense_of_name(name).better
        )

    def step(self, samples: int, steps: int) -> None:
        """Record progress: the approximate samples of all workers and the steps done in this epoch."""
        now = time.time()
        if now - self._written < PROGRESS_EVERY:
            return
        self._written = now
        # The script does not say how many steps an epoch has, but the last one shows it.
        expected = 0
        if self._records:
            expected = self._records[-1].steps
        self._progress = self._progress.model_copy(
            update={
                "step": steps,
                "steps": max(expected, steps),
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
                _say(note)
        samples = _samples_of(by_rank)
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
            # What an epoch takes beside its steps: the evaluation, and whatever else the script does.
            evaluation_seconds=by_rank[0].wall - by_rank[0].seconds,
            elapsed_training_seconds=before + seconds,
            validation=combine_metrics(qualities),
        )
        self._records.append(record)
        self._evaluated |= sum_denominators(qualities)
        # Of each worker, its largest step over all epochs: last batches are smaller.
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
                # As long as the last epoch took: the first one also compiles.
                "seconds_left": (now - self._began) * (self._epochs - record.epoch),
            }
        )
        self._began = now
        self._written = now
        self.run.write_progress(self._progress)

    def _refuse_unshared(self, by_rank: Sequence[EpochCounts]) -> None:
        point = self._point
        samples = _samples_of(by_rank)
        shares = [counts.share for counts in by_rank]
        refuse_apart(point.strategy, point.workers, shares)
        if os.environ.get(WEAK):
            return
        # A single run looks right: that each worker reads everything shows only beside another number of workers.
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
            # The run with more workers came first, when nothing could be held against it.
            error = grown_error(
                point.strategy,
                other.workers,
                seen,
                point.workers,
                samples,
            )
            failure = Failure(
                rank=None,
                exit_code=None,
                reason=str(error),
            )
            run.withdraw_result(failure)
            _say(f"the result of {other.name} is withdrawn. {error}")

    def _evaluated_samples(self, metric: str) -> int | None:
        """Return the samples behind a metric, and warn if another run measured it on others."""
        samples = round(self._evaluated.get(metric, 0))
        if not samples:
            return None
        workers = self._point.workers
        for _, other in self._others():
            seen = other.evaluated_samples
            if not seen or other.metric != metric:
                continue
            if find_other_set(workers, samples, other.workers, seen):
                _say(
                    f"{metric} is of {samples:,} samples, and of {seen:,} in {other.name}, so "
                    "their quality cannot be compared. Evaluate the whole set on each worker, or a share of "
                    "it without drop_remainder."
                )
        return samples

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
        # Workers that trained apart have times of another problem, and a quality of only one of their models.
        if len(digests) != 1:
            raise RunError(
                "equal parameters on all workers at the end of the script",
                f"{len(digests)} different sets on {len(left)} workers",
                f"Each worker trained its own model. Write {self._point.traits.join_line}.",
            )
        # The last value of each metric: one evaluated after the training counts before those of epochs.
        last: dict[str, float] = {}
        for record in records:
            last |= record.validation
        at_end = [one.qualities for one in left]
        last |= combine_metrics(at_end)
        self._evaluated |= sum_denominators(at_end)
        # The first metric that a script records is its quality.
        metric = next(iter(self._senses), "")
        sense = Sense(self._senses.get(metric), sense_of_name(metric).bounded)
        quality = last.get(metric)
        values = []
        for record in records:
            if metric in record.validation:
                values.append((record.validation[metric], record.epoch))
        best = find_best(values, sense)
        best_quality, best_epoch = quality, None
        if best is not None:
            best_quality, best_epoch = best
        # Without the first epoch, which compiles and fills caches, as in every study.
        steady = records[1:]
        seconds = sum(record.train_seconds for record in steady)
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
        # One process may hold several workers, as under MirroredStrategy.
        rows = max(self._most) * len(self._most)
        result = Result(
            **fields_of_point(point),
            communication=left[0].communication,
            per_worker_batch=-(-rows // point.workers),
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
        # The result comes last: a run that is ended while it writes is not finished.
        self.run.write_checksums(result)
        self.run.write_result(result)


def _say(text: str) -> None:
    """Print a line of rank 0, whose standard output belongs to the script."""
    print(f"scalestudy: {text}", file=sys.stderr, flush=True)


def _notes(by_rank: Sequence[EpochCounts]) -> Iterator[str]:
    """Yield mistakes that the first epoch shows, before the others are trained in vain."""
    digests = {counts.digest for counts in by_rank}
    if len(digests) > 1:
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
