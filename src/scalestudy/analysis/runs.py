"""What analysis works on: plain values, whatever they were read from."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scalestudy.study.gallery_record import GalleryRecord
from scalestudy.study.metrics import Better, Sense, known
from scalestudy.study.records import EpochRecord, RankRecord, Result
from scalestudy.study.state import State
from scalestudy.study.strategies import position
from scalestudy.units import bytes_of


@dataclass(frozen=True)
class Run:
    """A finished run."""

    result: Result
    epochs: Sequence[EpochRecord] = ()
    folder: str | None = None
    """Its folder, relative to the study's: `points/horovod-w2-s0/run-1`."""
    ranks: tuple[RankRecord, ...] = ()
    """Environment of rank 0 (or of all ranks), where it was recorded."""
    damage: tuple[str, ...] = ()
    """What is wrong with its records of epochs, which are left out then."""
    gallery: GalleryRecord | None = None
    """A few validation samples with their prediction, if it has left them."""


@dataclass(frozen=True)
class Planned:
    """A point that the study asks for, with the state of its newest run."""

    name: str
    strategy: str
    workers: int
    seed: int
    state: State
    swept: tuple[tuple[str, Any], ...] = ()
    folder: str | None = None
    reason: str | None = None
    """Why its newest run failed."""
    tail: tuple[str, ...] = ()
    """Last lines of the log of the rank that failed."""


@dataclass(frozen=True)
class Key:
    """What tells one row of the table from another: a point without its seed."""

    strategy: str
    workers: int
    variant: str
    """Other swept values, as JSON with sorted keys, so that any value can be compared."""

    @property
    def swept(self) -> dict[str, Any]:
        """Other swept values by dotted name."""
        values: dict[str, Any] = json.loads(self.variant)
        return values

    def with_(self, strategy: str, workers: int) -> "Key":
        """Key of another strategy or worker count with the same other swept values."""
        return Key(strategy, workers, self.variant)

    @property
    def label(self) -> str:
        """Short name for sentences: `horovod on 4 workers (train.batch_size = 8)`."""
        noun = "worker" if self.workers == 1 else "workers"
        return f"{self.strategy} on {self.workers} {noun}" + (f" ({self.details})" if self.swept else "")

    @property
    def details(self) -> str:
        """Other swept values in words; empty when nothing else was swept."""
        return describe(self.swept)


def key_of(strategy: str, workers: int, swept: dict[str, Any]) -> Key:
    """Key of a run or of a planned point."""
    return Key(strategy, workers, json.dumps(swept, sort_keys=True, default=str))


def key_of_run(run: Run) -> Key:
    """Key of a finished run."""
    return key_of(run.result.strategy, run.result.workers, run.result.swept)


def describe(swept: dict[str, Any]) -> str:
    """Swept values in words, sorted by name: `train.batch_size = 8, train.xla = true`."""
    return ", ".join(
        f"{name} = {value if isinstance(value, str) else json.dumps(value, default=str)}"
        for name, value in sorted(swept.items())
    )


def order(key: Key) -> tuple[Any, ...]:
    """Sorts rows as a reader looks for them: by variant, then strategy, then workers.

    Numbers and sizes ("8 MiB") in the variant sort as numbers, before words.
    """
    values = tuple((name, *_place(value)) for name, value in sorted(key.swept.items()))
    return values, position(key.strategy), key.strategy, key.workers


def _place(value: Any) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 0, float(value), ""
    try:
        return 0, float(bytes_of(str(value))), ""
    except ValueError:
        return 1, 0.0, str(value)


def grouped(runs: Iterable[Run]) -> dict[Key, list[Run]]:
    """Runs by row, rows in reading order, runs by seed."""
    groups: dict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        groups[key_of_run(run)].append(run)
    return {key: sorted(groups[key], key=lambda run: run.result.seed) for key in sorted(groups, key=order)}


def swept_names(runs: Sequence[Run]) -> list[str]:
    """Dotted names swept besides strategy, workers and seed, sorted."""
    return sorted({name for run in runs for name in run.result.swept})


def sense_of(runs: Sequence[Run]) -> Sense:
    """What the quality of runs means: as recorded, and in older folders as the name of the metric says."""
    result = next((run.result for run in runs if run.result.better), runs[0].result)
    named = known(result.metric)
    bounded = named.bounded if result.bounded is None else result.bounded
    return Sense(result.better or named.better, bounded)


def direction_label(better: Better | None) -> str:
    """Which way is better, as written on axes: `higher is better`; empty where nothing says so."""
    return f"{better} is better" if better else ""


def metric_label(name: str) -> str:
    """Name of a metric as written in text: `IoU`, `accuracy`."""
    known = {
        "iou": "IoU", "auc": "AUC", "f1": "F1", "dice": "Dice", "boundary_f1": "boundary F1",
        "auroc": "AUROC", "object_ap": "object AP", "ece": "ECE", "brier": "Brier score",
    }  # fmt: skip
    return known.get(name, name.replace("_", " "))
