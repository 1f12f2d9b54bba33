"""Plain values that analysis works on: runs, their epochs, planned points, and the keys of rows."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scalestudy.config.class_names import class_keys
from scalestudy.config.metric_senses import Better, Sense, known
from scalestudy.config.point import REPEATS, without_repeats
from scalestudy.plugins.strategies import position
from scalestudy.store.model_record import GalleryRecord
from scalestudy.store.record_file import first_error
from scalestudy.store.records import (
    Allocation,
    EpochOutcome,
    EpochRecord,
    Outcome,
    RankRecord,
)
from scalestudy.store.run_folder import EPOCHS
from scalestudy.store.state import State
from scalestudy.util.files import contents
from scalestudy.util.text import join_first, plural
from scalestudy.util.units import bytes_of

Seed = int | str
"""Identifies a run within its row: its seed, with the split if this was swept. A run without a seed
is identified by its name, which no other row shares."""


def read_epochs(run: Path) -> tuple[tuple[EpochRecord, ...], list[str]]:
    """Return the epochs in a run's folder, and an error for each line that cannot be parsed.

    An incomplete last line (still being written, or cut off by a kill) is left out.
    """
    try:
        data = contents(run / EPOCHS)
    except FileNotFoundError:
        return (), []
    except OSError as error:
        return (), [f"{EPOCHS} cannot be read: {error.strerror}"]
    good, wrong = [], []
    # Workers append whole lines, so that what follows the last line's end is unfinished.
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            good.append(EpochRecord.model_validate_json(line))
        except ValidationError as error:
            wrong.append(f"{EPOCHS}, line {number}: {first_error(error)}")
    return tuple(good), wrong


@dataclass(frozen=True)
class RunSource:
    """File that a run's numbers were taken from, as the user gave it, with its line or lines from 1."""

    file: str
    line: int | None = None
    last: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.file
        lines = f"line {self.line}"
        if self.last is not None:
            lines = f"lines {self.line}-{self.last}"
        return f"{self.file}, {lines}"


@dataclass(frozen=True)
class Run:
    """A finished run: our own, or numbers from another tool, many of which may be unknown.

    Attributes:
        result: A `Result` for our own runs.
        epochs: Its epochs, if they were recorded.
        folder: Its folder, relative to the study's: `points/horovod-w2-s0/run-1`.
        ranks: Environment of rank 0 (or of all ranks), if recorded.
        damage: Errors in its records of epochs, and records that differ from their checksums; these are left
            out.
        gallery: A few validation samples with their predictions, if the run saved any.
        source: File that the numbers come from; None for our own runs.
        epoch_seconds: Mean time of an epoch but the first, if the source states it or the time of each.
        allocations: What its jobs held, if a queue ran it.
        busy: What other programs did on its cores, in words; None if nothing was noted.
    """

    result: Outcome
    epochs: Sequence[EpochOutcome] = ()
    folder: str | None = None
    ranks: tuple[RankRecord, ...] = ()
    damage: tuple[str, ...] = ()
    gallery: GalleryRecord | None = None
    source: RunSource | None = None
    epoch_seconds: float | None = None
    allocations: tuple[Allocation, ...] = ()
    busy: str | None = None

    @property
    def wall_seconds(self) -> float | None:
        """Seconds from the start of its jobs to their end, else from that of its processes to the result."""
        held = 0.0
        for job in self.allocations:
            if job.ended is None:
                return self.result.wall_seconds
            held += job.ended - job.began
        if not self.allocations:
            return self.result.wall_seconds
        # Sites bill a job while it holds its nodes, also before and after its processes.
        return held

    @property
    def rank_hosts(self) -> set[str]:
        """Nodes of the ranks that were recorded."""
        return {rank.host for rank in self.ranks}

    @property
    def disturbed(self) -> str | None:
        """Why its times are too long; None if nothing disturbed it."""
        return self.result.oversubscribed or self.busy

    @property
    def is_timing(self) -> bool:
        """Whether it ended when its step time was known; its times are those of a training, computed."""
        return self.result.timing is not None

    @property
    def foreign(self) -> bool:
        """Whether it was measured with another tool."""
        return self.source is not None


@dataclass(frozen=True)
class Planned:
    """A point of the study, with the state of its newest run.

    `reason` is why that run failed.
    """

    name: str
    strategy: str
    workers: int
    seed: int
    state: State
    swept: tuple[tuple[str, Any], ...] = ()
    folder: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Key:
    """Identifies a row of the table: a point without its seed and split, which are repeats.

    `variant` holds the other swept values as JSON with sorted keys, so that any value can be compared.
    """

    strategy: str
    workers: int
    variant: str

    @property
    def swept(self) -> dict[str, Any]:
        """Other swept values by dotted name."""
        values: dict[str, Any] = json.loads(self.variant)
        return values

    @property
    def series(self) -> tuple[str, str]:
        """Identifies rows that differ only in the number of workers."""
        return self.strategy, self.variant

    def on(self, workers: int) -> "Key":
        """Return the key of another number of workers in the same series."""
        return Key(self.strategy, workers, self.variant)

    @property
    def label(self) -> str:
        """Short name for sentences: `horovod on 4 workers (train.batch_size = 8)`."""
        text = f"{self.strategy} on {self.workers} {plural('worker', self.workers)}"
        if self.swept:
            text += f" ({self.details})"
        return text

    @property
    def series_label(self) -> str:
        """Strategy, with the other swept values if there are any."""
        if not self.swept:
            return self.strategy
        return f"{self.strategy} ({self.details})"

    @property
    def details(self) -> str:
        """Other swept values in words; empty if nothing else was swept."""
        return describe_swept(self.swept)


def key_of(strategy: str, workers: int, swept: dict[str, Any]) -> Key:
    """Key of a run or of a planned point."""
    if not swept:
        return Key(strategy, workers, "{}")
    return Key(
        strategy,
        workers,
        json.dumps(without_repeats(swept), sort_keys=True, default=str),
    )


def key_of_run(run: Run) -> Key:
    """Key of a finished run."""
    return key_of(run.result.strategy, run.result.workers, run.result.swept)


def describe_swept(swept: dict[str, Any]) -> str:
    """Swept values in words, sorted by name: `train.batch_size = 8, train.xla = true`."""
    texts = []
    for name, value in sorted(swept.items()):
        shown = value
        if not isinstance(value, str):
            shown = json.dumps(value, default=str)
        texts.append(f"{name} = {shown}")
    return ", ".join(texts)


def order(key: Key) -> tuple[Any, ...]:
    """Sort key of rows in reading order: by variant, then strategy, then workers."""
    values = []
    for name, value in sorted(key.swept.items()):
        values.append((name, *_value_order(value)))
    return tuple(values), position(key.strategy), key.strategy, key.workers


def _value_order(value: Any) -> tuple[int, float, str]:
    """Sort key of swept values: numbers and sizes ("8 MiB") as numbers, before words."""
    # Sorted as texts, a batch of 128 would come before one of 16.
    try:
        if isinstance(value, int | float):
            return 0, float(value), ""
        return 0, float(bytes_of(str(value))), ""
    except (ValueError, OverflowError):  # a table may hold a number of any length
        return 1, 0.0, str(value)


class RunsByRow(dict[Key, Sequence[Run]]):
    """Runs by row, not changed once they are grouped."""

    @cached_property
    def by_series(self) -> Mapping[tuple[str, str], Sequence[Key]]:
        """Rows that differ only in the number of workers, by `Key.series`.

        Tables from elsewhere have thousands of series, for each of which a search of all rows takes too long.
        """
        found: dict[tuple[str, str], list[Key]] = defaultdict(list)
        for key in self:
            found[key.series].append(key)
        return dict(found)


def group_runs(runs: Iterable[Run]) -> RunsByRow:
    """Group runs by row: rows in reading order, runs by seed."""
    groups: dict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        groups[key_of_run(run)].append(run)
    # Queues and hosts end runs in any order; reports list them in one.
    ordered = RunsByRow()
    for key in sorted(groups, key=order):
        ordered[key] = sorted(groups[key], key=_by_seed)
    return ordered


def _by_seed(run: Run) -> tuple[Any, ...]:
    place: tuple[str, int] = ("", 0)
    # Tables without seeds keep the order of their lines.
    if run.source:
        place = (run.source.file, run.source.line or 0)
    seed = run.result.seed
    # None cannot be compared with a number: runs without a seed come last.
    return seed is None, seed or 0, *place, run.result.name


def all_foreign(runs: Iterable[Run]) -> bool:
    """Whether all of these runs were measured with another tool."""
    return all(run.foreign for run in runs)


def of_fewest_workers(keys: Sequence[Key]) -> list[Key]:
    """The rows with the fewest workers, in order."""
    fewest = min(key.workers for key in keys)
    return [key for key in keys if key.workers == fewest]


def seed_of(run: Run) -> Seed:
    """Block of a run: its seed and split; without a seed its name, which pairs with no other run."""
    seed = run.result.seed
    swept = run.result.swept
    if seed is None:
        return run.result.name
    repeats = []
    for name in REPEATS:
        if name in swept:
            repeats.append(f"{name} = {swept[name]}")
    if run.is_timing:  # taken at another hour than the training of this seed
        repeats.append("timing")
    if not repeats:
        return seed
    return ", ".join([f"seed = {seed}", *repeats])


def values_of(
    runs: Sequence[Run], value: Callable[[Run], float | None]
) -> dict[Seed, float]:
    """A row's values by seed; empty if any run lacks it."""
    values = {}
    for run in runs:
        values[seed_of(run)] = value(run)
    known: dict[Seed, float] = {}
    for seed, number in values.items():
        if number is None:
            return {}
        known[seed] = number
    return known


def epoch_values(
    epochs: Sequence[EpochOutcome],
    name: str,
    inner: str | None = None,
) -> list[Any]:
    """One value of all epochs, such as `"validation", "loss"`; None where an epoch lacks it."""
    if inner is None:
        return [getattr(epoch, name, None) for epoch in epochs]
    values = []
    for epoch in epochs:
        # Logs of other programs may hold no validation at all.
        outer = getattr(epoch, name, None) or {}
        values.append(outer.get(inner))
    return values


def swept_keys(runs: Sequence[Run]) -> list[str]:
    """Dotted names swept besides strategy, workers and seed, sorted."""
    names: set[str] = set()
    for run in runs:
        names.update(run.result.swept)
    return sorted(names)


def quality_sense(runs: Sequence[Run]) -> Sense:
    """Direction and scale of the quality of runs: as recorded, else as known for the metric's name.

    A metric in [0, 1] of which a value exceeds 1 is a percentage.
    """
    result = runs[0].result
    for run in runs:
        if run.result.better:
            result = run.result
            break
    named = known(result.metric)
    bounded, whole = named.bounded, named.whole
    if result.bounded is not None:
        bounded = result.bounded
        if bounded:
            whole = 1.0
    qualities = []
    for run in runs:
        if run.result.quality is not None:
            qualities.append(run.result.quality)
    if whole and bounded and max(qualities, default=0.0) > 1:
        whole = 100.0
    return Sense(result.better or named.better, bounded, whole)


def direction_label(better: Better | None) -> str:
    """Which direction is better, as written on axes: `higher is better`; empty if unknown."""
    if not better:
        return ""
    return f"{better} is better"


def sources(runs: Sequence[Run]) -> str:
    """Files and lines that runs were taken from, at most eight; empty for our own runs."""
    named: dict[str, None] = {}
    for run in runs:
        if run.source:
            named[str(run.source)] = None
    return join_first(list(named), most=8, separator="; ")


def metric_label(name: str) -> str:
    """Name of a metric as written in text: `IoU`, `accuracy`; `quality` if the name is empty."""
    labels = {
        "iou": "IoU",
        "auc": "AUC",
        "f1": "F1",
        "dice": "Dice",
    }
    return labels.get(name, name.replace("_", " ")) or "quality"


def whole_metrics(runs: Sequence[Run]) -> list[str]:
    """Names of the metrics that are not for a single class, in the order first recorded."""
    names: dict[str, None] = {}
    for run in runs:
        values = run.result.validation
        of_classes: set[str] = set()
        for name in values:
            of_classes.update(class_keys(name, run.result.class_names))
        for name in values:
            if name not in of_classes:
                names[name] = None
    return list(names)
