"""The runs of one strategy over numbers of workers, and how their work grows: strong or weak scaling.

Two works are told apart, since data-parallel training has two. *Of a training*: samples processed. The same
at every count is strong scaling; n times as many on n workers is weak scaling. *Of an update*: the global
batch. A batch per worker makes every update weak scaling, and takes n times fewer of them; a fixed global
batch makes every update strong scaling. So a study with a batch per worker and fixed epochs scales strongly
as a training (T(n) falls), by fewer updates of one length each. The law is of the training.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scalestudy.analysis.means import mean_of
from scalestudy.analysis.measures import is_virtual, oversubscription
from scalestudy.analysis.runs import Key, Run

Work = Literal["strong", "weak"]
ALIKE = 0.01
"""Share by which works may differ that count as the same."""
UNKNOWN = 1
"""What stands for the samples of a training where nobody wrote them down: the same for all of those."""


@dataclass(frozen=True)
class Series:
    """Timed runs of one strategy and variant, and what is known of their work.

    Attributes:
        key: Its row with the fewest workers.
        counts: Workers of each run.
        seconds: Training time of each run.
        work: "strong" where all runs process as many samples, "weak" where these grow with the workers.
        samples: Samples that one training on the fewest workers processes; None where nobody knows, and all
            trainings are taken to process as many.
        update: "fixed" where all counts have one global batch, "growing" where it grows with the workers;
            None for neither.
        nodes: Nodes of each count; without those whose ranks were not all recorded.
        others: Counts that process other numbers of samples, and are left out.
    """

    key: Key
    counts: tuple[int, ...]
    seconds: tuple[float, ...]
    work: Work
    samples: int | None
    update: Literal["fixed", "growing"] | None
    updates: float | None
    """Mean number of updates on the fewest workers; None where nobody knows."""
    nodes: Mapping[int, int]
    others: tuple[int, ...] = ()

    @property
    def different(self) -> tuple[int, ...]:
        """Different numbers of workers, in order."""
        return tuple(sorted(set(self.counts)))


def nodes_of(run: Run) -> int | None:
    """Number of nodes that a run computed on; None where not all of its ranks were recorded."""
    if not run.ranks or len(run.ranks) != run.ranks[0].size:
        return None
    return len({rank.host for rank in run.ranks})


def series_of(groups: Mapping[Key, Sequence[Run]]) -> list[Series]:
    """Every strategy and variant whose times say something, in reading order."""
    members: dict[tuple[str, str], dict[int, Sequence[Run]]] = {}
    for key, found in groups.items():
        runs = [run for run in found if run.result.training_seconds is not None]
        if runs and not oversubscription(runs) and not is_virtual(runs) and _samples(runs):
            members.setdefault((key.strategy, key.variant), {})[key.workers] = runs
    return [_series(Key(strategy, min(rows), variant), rows) for (strategy, variant), rows in members.items()]


def _series(key: Key, rows: Mapping[int, Sequence[Run]]) -> Series:
    samples = {count: _samples(runs) for count, runs in rows.items()}
    first = key.workers
    grown = {count: samples[count] * first / count for count in rows}
    weak = len(rows) > 1 and _alike(grown.values()) and not _alike(samples.values())
    kept = {count: runs for count, runs in rows.items() if weak or _alike((samples[count], samples[first]))}
    found = {count: {nodes_of(run) for run in runs} for count, runs in kept.items()}
    return Series(
        key=key,
        counts=tuple(count for count, runs in kept.items() for _ in runs),
        seconds=tuple(run.result.training_seconds or 0.0 for runs in kept.values() for run in runs),
        work="weak" if weak else "strong",
        samples=None if samples[first] == UNKNOWN else samples[first],
        update=_update({count: runs[0].result.global_batch for count, runs in kept.items()}),
        updates=mean_of(run.result.updates for run in kept[first]),
        nodes={
            count: nodes.pop() or 0 for count, nodes in found.items() if len(nodes) == 1 and None not in nodes
        },
        others=tuple(sorted(rows.keys() - kept.keys())),
    )


def _samples(runs: Sequence[Run]) -> int:
    """Samples of one training; 0 where runs differ."""
    found = {run.result.samples_processed for run in runs}
    if found == {None}:
        return UNKNOWN
    return (found.pop() or 0) if len(found) == 1 else 0


def _update(batches: Mapping[int, int | None]) -> Literal["fixed", "growing"] | None:
    known = {count: batch for count, batch in batches.items() if batch}
    if len(known) < len(batches):
        return None
    if _alike(known.values()):
        return "fixed"
    return "growing" if _alike(batch / count for count, batch in known.items()) else None


def _alike(values: Iterable[float]) -> bool:
    known = list(values)
    return max(known) <= min(known) * (1 + ALIKE)
