"""Metrics of a script's workers, and the metrics of its run that they make together."""

import re
from collections.abc import Sequence

from scalestudy.config.metric_senses import Sense, gain, known

Qualities = dict[str, tuple[float, float]]
"""Numerator and denominator by name of the metric."""


def sense_of_name(name: str) -> Sense:
    """Look up a metric without its prefix: "val_accuracy" and "eval/accuracy" are "accuracy"."""
    return known(re.sub(r"^(val|valid|validation|eval|test)[_/]", "", name))


def combine_metrics(given: Sequence[Qualities]) -> dict[str, float]:
    """Return each metric: the sum of the workers' numerators over that of their denominators."""
    values = {}
    for name in _names(given):
        numerators, denominators = _pairs(given, name)
        total = sum(denominators)
        if total:
            values[name] = sum(numerators) / total
        else:
            # No worker has evaluated anything.
            values[name] = float("nan")
    return values


def _names(given: Sequence[Qualities]) -> list[str]:
    """Return the names of the metrics, in the order of their first worker."""
    # A worker without samples to evaluate may have none of the metrics.
    names: dict[str, None] = {}
    for qualities in given:
        names |= dict.fromkeys(qualities)
    return list(names)


def _pairs(given: Sequence[Qualities], name: str) -> tuple[list[float], list[float]]:
    """Return the numerators and the denominators of a metric, of the workers that have it."""
    numerators = []
    denominators = []
    for qualities in given:
        if name in qualities:
            numerator, denominator = qualities[name]
            numerators.append(numerator)
            denominators.append(denominator)
    return numerators, denominators


def sum_denominators(given: Sequence[Qualities]) -> dict[str, float]:
    """Return the sum of the workers' denominators of each metric that counts samples."""
    totals: dict[str, float] = {}
    for name in _names(given):
        _, parts = _pairs(given, name)
        # 1 stands for a metric without a denominator.
        if max(parts) > 1:
            totals[name] = sum(parts)
    return totals


def find_best(
    values: Sequence[tuple[float, int]], sense: Sense
) -> tuple[float, int] | None:
    """Return the best value and its first epoch; the last value if the better direction is unknown."""
    if not values:
        return None
    if sense.better is None:
        return values[-1]
    better = sense.better

    def by_gain(pair: tuple[float, int]) -> tuple[float, int]:
        value, epoch = pair
        return gain(value, better), -epoch

    return max(values, key=by_gain)
