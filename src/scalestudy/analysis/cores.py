"""What cores per worker do: rows that differ in nothing else, side by side, and the best of each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.runs import Key
from scalestudy.analysis.table import Row
from scalestudy.study.strategies import is_timed

NAME = "launch.cpus_per_worker"


@dataclass(frozen=True)
class Sweep:
    """One strategy on one number of workers, with several numbers of cores."""

    key: Key
    """Without the cores."""
    rows: tuple[tuple[int, Row], ...]
    """By cores per worker; all with a training time."""

    @property
    def best(self) -> tuple[int, Row]:
        """Cores of the shortest training, and its row; the fewer cores of two alike."""
        return min(self.rows, key=lambda each: _seconds(each[1]))


@dataclass(frozen=True)
class Best:
    """The shortest training of a number of workers over all cores, as the published Cassava study has it."""

    sweep: Sweep
    cores: int
    row: Row
    speedup: float | None
    """Of the time of one worker, the best over cores too; None without it, or of other work."""

    @property
    def efficiency(self) -> float | None:
        """That, divided by the workers."""
        return None if self.speedup is None else self.speedup / self.row.workers


def sweeps(rows: Sequence[Row]) -> list[Sweep]:
    """What was swept over cores, in reading order; only where there are two numbers of them at least.

    Times of virtual workers, and of oversubscribed points, say nothing about cores: they are left out.
    """
    found: dict[Key, list[tuple[int, Row]]] = {}
    for row in rows:
        cores = row.key.swept.get(NAME)
        timed = is_timed(row.implementation) and not row.oversubscribed
        if isinstance(cores, int) and row.training_seconds.value and timed:
            found.setdefault(_without(row.key), []).append((cores, row))
    return [
        Sweep(key, tuple(sorted(each, key=lambda one: one[0])))
        for key, each in found.items()
        if len({cores for cores, _ in each}) > 1
    ]


def best_over_cores(found: Sequence[Sweep]) -> list[Best]:
    """The best of each, against one worker's."""
    singles = {(each.key.strategy, each.key.variant): each.best[1] for each in found if each.key.workers == 1}
    bests = []
    for each in found:
        cores, row = each.best
        one = singles.get((each.key.strategy, each.key.variant))
        alike = one is not None and one.samples_processed == row.samples_processed
        speedup = _seconds(one) / _seconds(row) if one is not None and alike else None
        bests.append(Best(each, cores, row, speedup))
    return bests


def _without(key: Key) -> Key:
    swept = {name: value for name, value in key.swept.items() if name != NAME}
    return Key(key.strategy, key.workers, json.dumps(swept, sort_keys=True, default=str))


def _seconds(row: Row) -> float:
    assert row.training_seconds.value is not None
    return row.training_seconds.value
