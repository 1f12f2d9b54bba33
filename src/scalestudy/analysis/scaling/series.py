"""The runs of one strategy over numbers of workers, and how their work grows: strong or weak scaling.

Numbers from other tools may lack the training time. Then the mean time of an epoch or the time of 1,000
samples is used. Unknown work is assumed to be equal.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from scalestudy.analysis.costs import mean_of
from scalestudy.analysis.measures import (
    Measure,
    Measures,
    epoch_seconds,
    gathered,
    measured_times,
    other_updates,
    times_count,
)
from scalestudy.analysis.runs import Key, Run, values_of
from scalestudy.analysis.scaling.fit import Update, Work

TimeOf = Literal["training", "epoch", "samples"]
ALIKE = 0.01
"""Relative difference up to which amounts of work count as equal."""
SAMPLES = 1000
"""Samples whose time is fitted if neither the time of a training nor of an epoch is known."""
TIMES: dict[TimeOf, str] = {
    "training": "Training time",
    "epoch": "Time of an epoch",
    "samples": f"Time of {SAMPLES:,} samples",
}
"""Names of the times of a series."""


@dataclass(frozen=True)
class Series:
    """Timed runs of one strategy and variant, and what is known about their work.

    Attributes:
        key: Its row with the fewest workers.
        different: Different numbers of workers, in order.
        times: Seconds of the unit in `of`, with all rows that share its design.
        work: "strong" if all runs process as many samples, "weak" if the samples grow with the workers.
        samples: Samples that one training on the fewest workers processes; None if unknown.
        update: "fixed" if the global batch is constant, "growing" if it grows with the workers; None if
            neither or unknown.
        updates: Mean number of updates on the fewest workers; None if unknown.
        nodes: Nodes for each number of workers, without those whose ranks were not all recorded.
        others: Numbers of workers that process other numbers of samples and are left out.
        of: Which time is fitted.
    """

    key: Key
    different: tuple[int, ...]
    times: Measure
    work: Work
    samples: int | None
    update: Update | None
    updates: float | None
    nodes: Mapping[int, int]
    others: tuple[int, ...] = ()
    of: TimeOf = "training"

    @property
    def timed(self) -> list[tuple[int, float]]:
        """Workers and seconds of each run."""
        counts = self.different
        return [
            (count, seconds) for count in counts for seconds in self.times.values[self.key.on(count)].values()
        ]

    @property
    def nodes_measured(self) -> int | None:
        """Largest number of nodes measured; None unless it is known for every number of workers."""
        return max(self.nodes.values()) if set(self.nodes) == set(self.different) else None

    @property
    def workers_per_node(self) -> int | None:
        """Largest number of workers on one node; None unless nodes are known for every number of workers."""
        if self.nodes_measured is None:
            return None
        return max(math.ceil(count / nodes) for count, nodes in self.nodes.items())


def nodes_of(run: Run) -> int | None:
    """Number of nodes that a run computed on; None unless all of its ranks were recorded."""
    if not run.ranks or len(run.ranks) != run.ranks[0].size:
        return None
    return len({rank.host for rank in run.ranks})


def series_of(measures: Measures) -> list[Series]:
    """Every strategy and variant with usable times, in reading order."""
    groups = measures.groups
    usable = [key for key in groups if times_count(groups[key]) and not other_updates(groups[key])]
    found = (_series(keys, measures) for keys in gathered(usable, lambda key: key.series).values())
    return [series for series in found if series is not None]


def _series(keys: Sequence[Key], measures: Measures) -> Series | None:
    rows = {key.workers: measures.groups[key] for key in keys}
    runs = [run for members in rows.values() for run in members]
    # The first time that is known for all runs.
    of = next((of for of, seconds in _SECONDS.items() if all(seconds(run) is not None for run in runs)), None)
    if of is None:
        return None
    works = _works(rows, of)
    first = min(works, default=0)
    if not first:
        return None
    grown = [work * first / count for count, work in works.items()]
    weak = len(works) > 1 and nearly_equal(grown) and not nearly_equal(works.values())
    compared = {
        count: rows[count] for count, work in works.items() if weak or nearly_equal((work, works[first]))
    }
    nodes = {count: {nodes_of(run) for run in members} for count, members in compared.items()}
    return Series(
        key=keys[0].on(first),
        different=tuple(sorted(compared)),
        times=measures.training_seconds if of == "training" else _own_times(keys, measures, of),
        work="weak" if weak else "strong",
        samples=compared[first][0].result.samples_processed,
        update=_update({count: members[0].result.global_batch for count, members in compared.items()}),
        updates=mean_of(run.result.updates for run in compared[first]),
        nodes={
            count: number
            for count, numbers in nodes.items()
            if len(numbers) == 1 and (number := next(iter(numbers))) is not None
        },
        others=tuple(sorted(rows.keys() - compared.keys())),
        of=of,
    )


_SECONDS: dict[TimeOf, Callable[[Run], float | None]] = {
    "training": lambda run: run.result.training_seconds,
    "epoch": lambda run: epoch_seconds(run) if run.foreign else None,
    "samples": lambda run: SAMPLES / run.result.throughput if run.foreign and run.result.throughput else None,
}


def _own_times(keys: Sequence[Key], measures: Measures, of: TimeOf) -> Measure:
    groups = {key: measures.groups[key] for key in keys}
    return measured_times(groups, {key: values_of(runs, _SECONDS[of]) for key, runs in groups.items()})


def _works(rows: Mapping[int, Sequence[Run]], of: TimeOf) -> dict[int, float]:
    """Work in samples or epochs by number of workers, without those whose runs differ by more than `ALIKE`.

    If only the size of the training set is known, every epoch is assumed to process all of it.
    """
    if of == "samples":
        return dict.fromkeys(rows, 1.0)
    sized = all(run.result.training_samples for runs in rows.values() for run in runs)

    def work(run: Run) -> float:
        size = (run.result.training_samples or 1) if sized else 1
        if of == "epoch":
            return size
        return run.result.samples_processed or size * (run.result.epochs or 1)

    works = {count: {work(run) for run in runs} for count, runs in rows.items()}
    return {count: fmean(numbers) for count, numbers in works.items() if nearly_equal(numbers)}


def _update(batches: Mapping[int, int | None]) -> Update | None:
    sizes = {count: batch for count, batch in batches.items() if batch}
    if len(sizes) < len(batches):
        return None
    if nearly_equal(sizes.values()):
        return "fixed"
    return "growing" if nearly_equal(batch / count for count, batch in sizes.items()) else None


def nearly_equal(values: Iterable[float]) -> bool:
    """Whether amounts of work count as equal."""
    numbers = list(values)
    return max(numbers) <= min(numbers) * (1 + ALIKE)
