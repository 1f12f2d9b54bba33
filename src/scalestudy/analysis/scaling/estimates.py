"""Positive numbers with intervals, combined on logarithms."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from scalestudy.analysis.statistics import NOTHING, Estimate


def geometric_means(values: Mapping[int, Sequence[float]]) -> dict[int, Estimate]:
    """Geometric mean of each group of numbers, with Student's interval from their common spread.

    A group that spreads further than all together keeps its own variance; one number has no interval. Where
    one is not a finite positive number, there are no means.
    """
    if not all(0 < value < math.inf for group in values.values() for value in group):
        return dict.fromkeys(values, NOTHING)
    logs = {name: [math.log(value) for value in group] for name, group in values.items()}
    centres = {name: fmean(group) for name, group in logs.items()}
    squares = {name: sum((value - centres[name]) ** 2 for value in group) for name, group in logs.items()}
    freedom = sum(len(group) - 1 for group in logs.values())
    found = {}
    for name, group in logs.items():
        value = math.exp(centres[name])
        if len(group) < 2:
            found[name] = Estimate(value)
            continue
        variance = max(sum(squares.values()) / freedom, squares[name] / (len(group) - 1))
        found[name] = within(value, math.exp(student(freedom) * math.sqrt(variance / len(group))))
    return found


def within(value: float, factor: float) -> Estimate:
    """A value that is known within a factor."""
    return Estimate(value, value / factor, value * factor)


def product(first: Estimate, second: Estimate) -> Estimate:
    """Product of two independent estimates: on logarithms reaches add by squares (Zou and Donner 2008)."""
    if first.value is None or second.value is None:
        return NOTHING
    value = first.value * second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(value)
    down = math.hypot(math.log(first.value / first.low), math.log(second.value / second.low))
    up = math.hypot(math.log(first.high / first.value), math.log(second.high / second.value))
    return Estimate(value, value * math.exp(-down), value * math.exp(up))


def inverse(estimate: Estimate) -> Estimate:
    """1 over it."""
    value, low, high = (1 / end if end else None for end in (estimate.value, estimate.low, estimate.high))
    return Estimate(value, high, low)


def student(freedom: float) -> float:
    """Quantile of Student's t that leaves 2.5 % above it."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))
