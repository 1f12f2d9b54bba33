"""What is measured over all rows of a study, each quantity on its scale and with its pooled spread.

Qualities are pooled and compared by seed: all rows see the same split and initial weights under one seed.
Times are not: a seed decides nothing about speed, and what disturbs a run (other users, heat, the network)
belongs to its hour and not to its seed, so runs of one seed are no more alike than others, and pairing
them would only cost degrees of freedom.

Only rows measured alike are pooled: qualities by one metric; times of real workers apart from those of
virtual ones, which are computed one after another; and never the times of oversubscribed runs, which
depend on what else the machine did.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scalestudy.analysis.chances import paired, unpaired
from scalestudy.analysis.pooling import Pool, pool
from scalestudy.analysis.rates import Basis, rates
from scalestudy.analysis.runs import Key, Run, Seed, sense_of, values_of
from scalestudy.analysis.scales import LOGARITHM, Scale, decimals, quality_scale
from scalestudy.analysis.statistics import (
    NOTHING,
    Estimate,
    Spread,
    difference,
    mean,
    own_spread,
    paired_difference,
    ratio,
    variance,
)
from scalestudy.study.metrics import Sense
from scalestudy.study.strategies import is_timed

Groups = Mapping[Key, Sequence[Run]]
Values = Mapping[Seed, float]
"""A row's values by seed."""


@dataclass(frozen=True)
class Measure:
    """One quantity over all rows."""

    values: Mapping[Key, Values]
    """Empty for rows that lack it."""
    scales: Mapping[Key, Scale]
    pools: tuple[Pool[Key], ...] = ()
    """One for each kind of rows that are measured alike, where pooling was sound."""
    _known: dict[Key, Spread | None] = field(default_factory=dict, repr=False, compare=False)
    """Spreads that were asked for already: each row is compared with several."""

    def mean(self, key: Key) -> Estimate:
        """Mean over a row's runs: geometric for what is positive, else arithmetic."""
        values = list(self.values[key].values())
        return mean(values, self.scales[key], self._spread(key))

    def ratio(self, key: Key, reference: Key) -> Estimate:
        """Ratio of two rows' geometric means."""
        ours, theirs = list(self.values[key].values()), list(self.values[reference].values())
        return ratio(ours, theirs, self._spreads(key, reference))

    def difference(self, key: Key, reference: Key) -> Estimate:
        """A row's mean less another's, paired, over the seeds that both have.

        Where they share fewer than two seeds: over all seeds, unpaired.
        """
        ours, theirs, scale = self.values[key], self.values[reference], self.scales[key]
        everything = [*ours.values(), *theirs.values()]
        if not all(math.isfinite(value) for value in everything):
            return NOTHING
        common = sorted(ours.keys() & theirs.keys(), key=str)
        if len(common) > 1:
            shared = next((p.residual for p in self.pools if {key, reference} <= p.together), None)
            pairs = [ours[seed] for seed in common], [theirs[seed] for seed in common]
            return paired_difference(*pairs, scale, shared)
        spreads = self._spreads(key, reference)
        return difference(list(ours.values()), list(theirs.values()), scale, spreads)

    def chance_of_ratio(self, key: Key, reference: Key) -> float | None:
        """P value of the ratio being 1; None where a row has one run."""
        spreads = self._spreads(key, reference)
        if spreads is None:
            return None
        ours, theirs = (
            [self.scales[row].forward(v) for v in self.values[row].values()] for row in (key, reference)
        )
        return unpaired(ours, theirs, spreads)

    def chance_of_difference(self, key: Key, reference: Key) -> float | None:
        """P value of the difference being 0, paired as in `difference`; None where a row has one run."""
        spreads, forward = self._spreads(key, reference), self.scales[key].forward
        if spreads is None:
            return None
        ours, theirs = self.values[key], self.values[reference]
        common = sorted(ours.keys() & theirs.keys(), key=str)
        if len(common) < 2:
            return unpaired(map(forward, ours.values()), map(forward, theirs.values()), spreads)
        changes = [forward(ours[seed]) - forward(theirs[seed]) for seed in common]
        own = Spread(variance(changes) / 2, len(changes) - 1)
        shared = next((p.residual for p in self.pools if {key, reference} <= p.together), None)
        return paired(changes, shared.at_least(own) if shared else own)

    def _spread(self, key: Key) -> Spread | None:
        """Spread of a row's runs; None of one run, or of values that their scale does not hold."""
        if key not in self._known:
            values, scale = list(self.values[key].values()), self.scales[key]
            spread_out = len(values) > 1 and all(map(scale.holds, values))
            self._known[key] = self._pooled(key, own_spread(values, scale)) if spread_out else None
        return self._known[key]

    def _pooled(self, key: Key, own: Spread) -> Spread:
        for found in self.pools:
            if found.spread and key in found.together:
                return found.spread.at_least(own)
            if found.spread and key in found.apart:
                # It may stand apart by how it answers to seeds, and yet have runs that happen to agree.
                return max(own, found.spread, key=lambda spread: spread.reach(1))
        return own

    def _spreads(self, key: Key, reference: Key) -> tuple[Spread, Spread] | None:
        ours, theirs = self._spread(key), self._spread(reference)
        return (ours, theirs) if ours and theirs else None


def measured(
    values: Mapping[Key, Values],
    scales: Mapping[Key, Scale],
    alike: Iterable[Sequence[Key]],
    by_seed: bool,
) -> Measure:
    """A quantity whose spread is pooled within each group of rows that are measured alike.

    Args:
        values: Each row's values by seed, in their own unit.
        scales: Where each row's intervals are computed.
        alike: The groups; rows in none keep their own spread.
        by_seed: Whether runs of one seed share something in all rows.
    """
    pools = []
    for keys in alike:
        usable = {
            key: {seed: scales[key].forward(value) for seed, value in values[key].items()}
            for key in keys
            if all(map(scales[key].holds, values[key].values()))
        }
        found = pool(usable, by_seed)
        if found.rows or found.apart:
            pools.append(found)
    return Measure(values, scales, tuple(pools))


@dataclass(frozen=True)
class Measures:
    """A study's runs by row, and what was measured over them."""

    groups: Groups
    throughput: Measure
    training_seconds: Measure
    quality: Measure
    rate: Measure
    """What speed-up is the ratio of: throughput, or what stands for it where that is not known."""
    bases: Mapping[Key, Basis]
    """What `rate` is of each row."""
    senses: Mapping[Key, Sense]
    """What each row's quality means."""
    digits: Mapping[Key, int]
    """Decimals that each row's quality is written with."""


def measure(groups: Groups) -> Measures:
    """Pool what can be pooled over the rows of a study."""
    senses = {key: sense_of(runs) for key, runs in groups.items()}
    quality = _qualities(groups, senses)
    found = rates(groups)
    throughput = _timed(groups, {key: values_of(runs, _throughput) for key, runs in groups.items()})
    bases = {key: basis for key, (basis, _) in found.items()}
    of_throughput = all(basis == "throughput" for basis in bases.values())
    return Measures(
        groups,
        throughput,
        _timed(groups, {key: values_of(runs, _training) for key, runs in groups.items()}),
        quality,
        throughput if of_throughput else _timed(groups, {key: values for key, (_, values) in found.items()}),
        bases,
        senses,
        _digits(groups, quality),
    )


def oversubscription(runs: Sequence[Run]) -> str | None:
    """Why the timing of these runs says nothing about speed-up, or None."""
    return next((run.result.oversubscribed for run in runs if run.result.oversubscribed), None)


def is_virtual(runs: Sequence[Run]) -> bool:
    """Whether the workers of these runs were computed one after another."""
    return not is_timed(runs[0].result.implementation)


def _throughput(run: Run) -> float | None:
    return run.result.throughput


def _training(run: Run) -> float | None:
    return run.result.training_seconds


def _quality(run: Run) -> float | None:
    return run.result.quality


def _timed(groups: Groups, values: Mapping[Key, Values]) -> Measure:
    alike: dict[bool, list[Key]] = {}
    for key, runs in groups.items():
        if values[key] and not oversubscription(runs):
            alike.setdefault(is_virtual(runs), []).append(key)
    scales = dict.fromkeys(groups, LOGARITHM)
    return measured(values, scales, alike.values(), by_seed=False)


def _by_metric(groups: Groups) -> dict[str, list[Key]]:
    alike: dict[str, list[Key]] = {}
    for key, runs in groups.items():
        alike.setdefault(runs[0].result.metric, []).append(key)
    return alike


def _qualities(groups: Groups, senses: Mapping[Key, Sense]) -> Measure:
    values = {key: values_of(runs, _quality) for key, runs in groups.items()}
    alike = _by_metric(groups)
    seeded = all(run.result.seed is not None for runs in groups.values() for run in runs)
    scales: dict[Key, Scale] = {}
    for keys in alike.values():
        bounded = all(senses[key].bounded for key in keys)
        scale = quality_scale(bounded, [value for key in keys for value in values[key].values()])
        scales |= dict.fromkeys(keys, scale)
    return measured(values, scales, alike.values(), by_seed=seeded)


def _digits(groups: Groups, quality: Measure) -> dict[Key, int]:
    digits: dict[Key, int] = {}
    for keys in _by_metric(groups).values():
        values = [value for key in keys for value in quality.values[key].values()]
        digits |= dict.fromkeys(keys, decimals(quality.scales[keys[0]], values))
    return digits
