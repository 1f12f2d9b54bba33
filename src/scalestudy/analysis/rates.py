"""How fast runs worked, by what is known of them: what speed-up is the ratio of.

Of our own runs that is throughput, in samples really processed. Numbers taken elsewhere may have none: then
the mean time of an epoch, all but the first, or else that of the whole training stands for it, which takes
for granted that all did the same work. One basis holds for all rows of a variant, so that none is held
against another kind of number.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from scalestudy.analysis.runs import Key, Run, Seed, values_of

Basis = Literal["throughput", "epoch", "training"]
BASES: tuple[Basis, ...] = ("throughput", "epoch", "training")


def rates(groups: Mapping[Key, Sequence[Run]]) -> dict[Key, tuple[Basis, dict[Seed, float]]]:
    """Basis and values by seed of each row; no values where it is not known, or not finite and positive."""
    variants: dict[str, dict[Key, Sequence[Run]]] = {}
    for key, runs in groups.items():
        variants.setdefault(key.variant, {})[key] = runs
    found: dict[Key, tuple[Basis, dict[Seed, float]]] = {}
    for members in variants.values():
        basis = _basis(members)
        found |= {key: (basis, _values(runs, basis)) for key, runs in members.items()}
    return {key: found[key] for key in groups}


def epoch_seconds(run: Run) -> float | None:
    """Mean time of an epoch, all but the first, in seconds; None where one of them is not known."""
    if run.epoch_seconds is not None:
        return run.epoch_seconds
    times = [epoch.train_seconds for epoch in run.epochs[1:]]
    known = [time for time in times if time is not None]
    return fmean(known) if known and len(known) == len(times) else None


def _basis(members: Mapping[Key, Sequence[Run]]) -> Basis:
    foreign = [runs for runs in members.values() if all(run.foreign for run in runs)]
    if len(foreign) < len(members):  # ours are held to throughput, or to nothing
        return "throughput"
    known = {basis: sum(bool(_values(runs, basis)) for runs in foreign) for basis in BASES}
    return max(BASES, key=lambda basis: known[basis])  # the first of equals


def _values(runs: Sequence[Run], basis: Basis) -> dict[Seed, float]:
    if basis == "throughput":
        return values_of(runs, lambda run: run.result.throughput)
    if basis == "epoch":
        return values_of(runs, lambda run: _inverse(epoch_seconds(run)))
    return values_of(runs, lambda run: _inverse(run.result.training_seconds))


def _inverse(seconds: float | None) -> float | None:
    return 1 / seconds if seconds else None
