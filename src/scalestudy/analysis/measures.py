"""What is measured over all rows of a study, each quantity on its scale and with the spread of its design.

Runs of one seed are one block: they share split and initial weights and were taken in one round, in random
order (`study.expand`), so all quantities are compared within seeds (`blocks`).

Only rows measured alike share a design: qualities by one metric; times of real workers apart from those of
virtual ones, which are computed one after another; and never the times of oversubscribed runs, which depend
on what else the machine did.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean
from typing import Literal

from scalestudy.analysis.blocks import Pooled, Values, contrast, mean, pooled
from scalestudy.analysis.runs import Key, Run, Seed, sense_of, values_of
from scalestudy.analysis.statistics import (
    LINEAR,
    LOGARITHM,
    NOTHING,
    Contrast,
    Estimate,
    Scale,
    decimals,
    exponential,
    quality_scale,
)
from scalestudy.study.metrics import Sense, known
from scalestudy.study.strategies import is_timed, references

Groups = Mapping[Key, Sequence[Run]]
Basis = Literal["throughput", "epoch", "training"]
BASES: tuple[Basis, ...] = ("throughput", "epoch", "training")
"""What speed-up is the ratio of: throughput in samples really processed. Numbers taken elsewhere may have
none: then the mean time of an epoch, all but the first, or that of the whole training stands for it, on the
assumption that all did the same work. One basis holds for all rows of a variant."""


@dataclass(frozen=True)
class Measure:
    """One quantity over all rows.

    Attributes:
        values: Each row's values by block; empty for rows that lack it.
        scales: Where the interval of each row's mean is computed.
        differences: Where two rows are compared: on logarithms what is told by ratios, else linearly.
        of_means: The design of each row on its scale.
        of_differences: The design of each row where it is compared.
    """

    values: Mapping[Key, Values]
    scales: Mapping[Key, Scale]
    differences: Scale
    of_means: Mapping[Key, Pooled[Key] | None]
    of_differences: Mapping[Key, Pooled[Key] | None]

    def mean(self, key: Key) -> Estimate:
        """Mean over a row's runs: geometric for what is positive, else arithmetic."""
        return mean([*self.values[key].values()], self.scales[key], self.of_means[key])

    def contrast(self, key: Key, reference: Key) -> Contrast | None:
        """A row less another on the scale of differences; None where a value is not on that scale."""
        ours, theirs = self.values[key], self.values[reference]
        everything = [*ours.values(), *theirs.values()]
        if not ours or not theirs or not all(map(self.differences.holds, everything)):
            return None
        return contrast(
            _on(self.differences, ours),
            _on(self.differences, theirs),
            self.of_differences[key],
            self.of_differences[reference],
        )

    def ratio(self, key: Key, reference: Key) -> Estimate:
        """Ratio of two rows' geometric means."""
        compared = self.contrast(key, reference)
        if compared is None:
            return NOTHING
        found = compared.estimate
        return Estimate(
            *(None if end is None else exponential(end) for end in (found.value, found.low, found.high))
        )

    def difference(self, key: Key, reference: Key) -> Estimate:
        """A row's arithmetic mean less another's."""
        compared = self.contrast(key, reference)
        return NOTHING if compared is None else compared.estimate


def measured(
    values: Mapping[Key, Values],
    scales: Mapping[Key, Scale],
    alike: Iterable[Sequence[Key]],
    differences: Scale,
) -> Measure:
    """A quantity with a design for each group of rows that are measured alike; rows in none stand alone."""
    of_means: dict[Key, Pooled[Key] | None] = dict.fromkeys(values)
    of_differences: dict[Key, Pooled[Key] | None] = dict.fromkeys(values)
    for keys in alike:
        of_means |= _design(keys, values, lambda key: scales[key])
        of_differences |= _design(keys, values, lambda _: differences)
    return Measure(values, scales, differences, of_means, of_differences)


def _design(
    keys: Sequence[Key], values: Mapping[Key, Values], scale: Callable[[Key], Scale]
) -> dict[Key, Pooled[Key] | None]:
    """The design of those rows that belong to it."""
    held = [key for key in keys if all(map(scale(key).holds, values[key].values()))]
    design = pooled({key: _on(scale(key), values[key]) for key in held})
    return dict.fromkeys(design.rows, design) if design else {}


def _on(scale: Scale, values: Values) -> Values:
    return {block: scale.forward(value) for block, value in values.items()}


@dataclass(frozen=True)
class Measures:
    """A study's runs by row, and what was measured over them."""

    groups: Groups
    throughput: Measure
    training_seconds: Measure
    wall_seconds: Measure
    """From the start of the processes to the result: what is waited and paid for."""
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
    """Measure every quantity over the rows of a study."""
    senses = {key: sense_of(runs) for key, runs in groups.items()}
    quality = _qualities(groups, senses)
    found = throughputs(groups)
    bases = {key: basis for key, (basis, _) in found.items()}
    throughput = _timed(groups, lambda run: run.result.throughput)
    of_throughput = all(basis == "throughput" for basis in bases.values())
    return Measures(
        groups,
        throughput,
        _timed(groups, lambda run: run.result.training_seconds),
        _timed(groups, lambda run: run.result.wall_seconds),
        quality,
        throughput
        if of_throughput
        else _of_times(groups, {key: values for key, (_, values) in found.items()}),
        bases,
        senses,
        _digits(groups, quality),
    )


def oversubscription(runs: Sequence[Run]) -> str | None:
    """Why the timing of these runs says nothing about speed-up, or None."""
    return next((run.result.oversubscribed for run in runs if run.result.oversubscribed), None)


def find_baseline(key: Key, groups: Groups, timed: bool = False) -> Key | None:
    """The row that `key` is held against.

    Its own strategy's on one worker, else plain training's; where neither was run, its own strategy's with
    the fewest workers, if it has several. Only rows of the same engine with the same other swept values
    count, and where `timed`, none that was oversubscribed.
    """
    alike = groups.get(key) or next((groups[row] for row in groups if row.strategy == key.strategy), ())
    engine = alike[0].result.engine if alike else None

    def is_usable(row: Key) -> bool:
        return not timed or not oversubscription(groups[row])

    for strategy in (key.strategy, *references(engine)):
        single = key.with_(strategy, 1)
        if single in groups and groups[single][0].result.engine == engine and is_usable(single):
            return single
    own = [
        row for row in groups if (row.strategy, row.variant) == (key.strategy, key.variant) and is_usable(row)
    ]
    if len(own) < 2 or key.with_(key.strategy, 1) in groups:
        return None
    return min(own, key=lambda row: row.workers)


def is_virtual(runs: Sequence[Run]) -> bool:
    """Whether the workers of these runs were computed one after another."""
    return not is_timed(runs[0].result.implementation)


def _timed(groups: Groups, value: Callable[[Run], float | None]) -> Measure:
    return _of_times(groups, {key: values_of(runs, value) for key, runs in groups.items()})


def _of_times(groups: Groups, values: Mapping[Key, Values]) -> Measure:
    alike: dict[bool, list[Key]] = {}
    for key, runs in groups.items():
        if values[key] and not oversubscription(runs):
            alike.setdefault(is_virtual(runs), []).append(key)
    return measured(values, dict.fromkeys(groups, LOGARITHM), alike.values(), LOGARITHM)


def _by_metric(groups: Groups) -> dict[str, list[Key]]:
    alike: dict[str, list[Key]] = {}
    for key, runs in groups.items():
        alike.setdefault(runs[0].result.metric, []).append(key)
    return alike


def _qualities(groups: Groups, senses: Mapping[Key, Sense]) -> Measure:
    values = {key: values_of(runs, lambda run: run.result.quality) for key, runs in groups.items()}
    alike = _by_metric(groups)
    scales: dict[Key, Scale] = {}
    for keys in alike.values():
        bounded = all(senses[key].bounded for key in keys)
        scale = quality_scale(bounded, [value for key in keys for value in values[key].values()])
        scales |= dict.fromkeys(keys, scale)
    return measured(values, scales, alike.values(), LINEAR)


def _digits(groups: Groups, quality: Measure) -> dict[Key, int]:
    digits: dict[Key, int] = {}
    for keys in _by_metric(groups).values():
        values = [value for key in keys for value in quality.values[key].values()]
        digits |= dict.fromkeys(keys, decimals(quality.scales[keys[0]], values))
    return digits


def metric_of(runs: Sequence[Run], name: str) -> Estimate:
    """Mean of a metric over a row's runs, its interval from their own spread; nothing where one lacks it."""
    values = [run.result.validation.get(name) for run in runs]
    found = [value for value in values if value is not None and isfinite(value)]
    if len(found) < len(values) or not found:
        return NOTHING
    return mean(found, quality_scale(known(name).bounded, found))


def throughputs(groups: Groups) -> dict[Key, tuple[Basis, dict[Seed, float]]]:
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
