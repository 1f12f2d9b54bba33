"""The runs of one strategy over numbers of workers, and how their work grows: strong or weak scaling.

Strong and weak are said of the work of a training, the samples it processes, so that a series is never both:
the same at every count is strong scaling, n times as many on n workers is weak scaling. A batch per worker
and fixed epochs scale strongly, by n times fewer updates of one length each.

Of numbers taken elsewhere the training time may not be known: then the mean time of an epoch stands for it,
or the time of 1,000 samples. Of these the size of the training set tells the work, where it is known of all;
work that is not known is taken to be alike.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from scalestudy.analysis.costs import mean_of
from scalestudy.analysis.measures import epoch_seconds, is_virtual, oversubscription
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.scaling.terms import Update, Work
from scalestudy.analysis.statistics import Estimate, geometric_means

TimeOf = Literal["training", "epoch", "samples"]
ALIKE = 0.01
"""Share by which works may differ that count as the same."""
SAMPLES = 1000
"""Samples whose time is fitted where no time of a training or an epoch is known."""
TIMES: dict[TimeOf, str] = {
    "training": "Training time",
    "epoch": "Time of an epoch",
    "samples": f"Time of {SAMPLES:,} samples",
}
"""What the seconds of a series are of."""


@dataclass(frozen=True)
class Series:
    """Timed runs of one strategy and variant, and what is known of their work.

    Attributes:
        key: Its row with the fewest workers.
        counts: Workers of each run.
        seconds: Time of each run, of what `of` says.
        of: What the time is of.
        work: "strong" where all runs process as many samples, "weak" where these grow with the workers.
        samples: Samples that one training on the fewest workers processes; None where nobody knows.
        update: "fixed" where all counts have one global batch, "growing" where it grows with the workers;
            None for neither, and where nobody knows.
        updates: Mean number of updates on the fewest workers; None where nobody knows.
        nodes: Nodes of each count; without those whose ranks were not all recorded.
        others: Counts that process other numbers of samples, and are left out.
    """

    key: Key
    counts: tuple[int, ...]
    seconds: tuple[float, ...]
    work: Work
    samples: int | None
    update: Update | None
    updates: float | None
    nodes: Mapping[int, int]
    others: tuple[int, ...] = ()
    of: TimeOf = "training"

    @property
    def different(self) -> tuple[int, ...]:
        """Different numbers of workers, in order."""
        return tuple(sorted(set(self.counts)))

    @property
    def nodes_measured(self) -> int | None:
        """Largest number of nodes measured; None where it is not known of every count."""
        return max(self.nodes.values()) if set(self.nodes) == set(self.counts) else None

    @property
    def workers_per_node(self) -> int | None:
        """Most workers that were seen on one node; None where nodes are not known of every count."""
        if self.nodes_measured is None:
            return None
        return max(math.ceil(count / nodes) for count, nodes in self.nodes.items())

    @cached_property
    def means(self) -> dict[int, Estimate]:
        """Geometric mean of each count's runs, in seconds, with its 95 % interval."""
        values: dict[int, list[float]] = {count: [] for count in self.different}
        for count, seconds in zip(self.counts, self.seconds, strict=True):
            values[count].append(seconds)
        return geometric_means(values)


def nodes_of(run: Run) -> int | None:
    """Number of nodes that a run computed on; None where not all of its ranks were recorded."""
    if not run.ranks or len(run.ranks) != run.ranks[0].size:
        return None
    return len({rank.host for rank in run.ranks})


def series_of(groups: Mapping[Key, Sequence[Run]]) -> list[Series]:
    """Every strategy and variant whose times say something, in reading order."""
    members: dict[tuple[str, str], dict[int, Sequence[Run]]] = {}
    for key, runs in groups.items():
        if not oversubscription(runs) and not is_virtual(runs):
            members.setdefault((key.strategy, key.variant), {})[key.workers] = runs
    found = (_series(strategy, variant, rows) for (strategy, variant), rows in members.items())
    return [each for each in found if each is not None]


def _series(strategy: str, variant: str, rows: Mapping[int, Sequence[Run]]) -> Series | None:
    of = _time_of(rows)
    if of is None:
        return None
    sized = all(run.result.training_samples for runs in rows.values() for run in runs)
    works = {count: _work(runs, of, sized) for count, runs in rows.items()}
    first = min((count for count, work in works.items() if work), default=0)
    if not first:
        return None
    known = {count: work for count, work in works.items() if work}
    grown = [work * first / count for count, work in known.items()]
    weak = len(known) > 1 and _alike(grown) and not _alike(known.values())
    kept = {count: rows[count] for count, work in known.items() if weak or _alike((work, known[first]))}
    found = {count: [nodes_of(run) or 0 for run in runs] for count, runs in kept.items()}
    updates = [run.result.updates for run in kept[first]]
    return Series(
        key=Key(strategy, first, variant),
        counts=tuple(count for count, runs in kept.items() for _ in runs),
        seconds=tuple(_seconds(run, of) or 0.0 for runs in kept.values() for run in runs),
        work="weak" if weak else "strong",
        samples=kept[first][0].result.samples_processed,
        update=_update({count: runs[0].result.global_batch for count, runs in kept.items()}),
        updates=mean_of(updates),
        nodes={count: nodes[0] for count, nodes in found.items() if nodes[0] and len(set(nodes)) == 1},
        others=tuple(sorted(rows.keys() - kept.keys())),
        of=of,
    )


def _time_of(rows: Mapping[int, Sequence[Run]]) -> TimeOf | None:
    """The first time that all runs know; None where there is none."""
    runs = [run for members in rows.values() for run in members]
    return next((of for of in TIMES if all(_seconds(run, of) is not None for run in runs)), None)


def _seconds(run: Run, of: TimeOf) -> float | None:
    if of == "training":
        return run.result.training_seconds
    if of == "epoch":
        return epoch_seconds(run) if run.foreign else None
    return SAMPLES / run.result.throughput if run.foreign and run.result.throughput else None


def _work(runs: Sequence[Run], of: TimeOf, sized: bool) -> float:
    """Work that the time is of, in samples or epochs; 0 where runs of one row differ.

    Where only the training set's size is known, of all runs (`sized`), they are taken to process all of it.
    """
    if of == "samples":
        return 1.0
    sizes = [(run.result.training_samples or 1) if sized else 1 for run in runs]
    if of == "epoch":
        found = set(sizes)
    else:
        found = {
            run.result.samples_processed or size * (run.result.epochs or 1)
            for run, size in zip(runs, sizes, strict=True)
        }
    return found.pop() if len(found) == 1 else 0.0


def _update(batches: Mapping[int, int | None]) -> Update | None:
    known = {count: batch for count, batch in batches.items() if batch}
    if len(known) < len(batches):
        return None
    if _alike(known.values()):
        return "fixed"
    return "growing" if _alike(batch / count for count, batch in known.items()) else None


def _alike(values: Iterable[float]) -> bool:
    known = list(values)
    return max(known) <= min(known) * (1 + ALIKE)
