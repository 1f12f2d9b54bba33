"""Estimates with 95 % intervals, the quantiles that they need, and the scales that they are computed on.

One run gives no interval, even where the spread of other rows is known: nothing in it shows that its own is
the same. What is reported, and why in this form: Hoefler and Belli, "Scientific benchmarking of parallel
computing systems", SC15 (2015), rules 3 to 8.

Positive quantities (throughput, seconds) spread by factors, so their intervals are computed on logarithms. A
metric that lies in [0, 1] is taken as asin(sqrt(q)), on which a proportion spreads alike wherever it lies
(Anscombe, "The transformation of Poisson, binomial and negative-binomial data", Biometrika 35, 1948); unlike
a logit, it has room for values of exactly 0 and 1. Any other metric stays on its own scale.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import TypeVar

K = TypeVar("K")
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
"""P value below which a difference counts as real, once it is corrected for the number of comparisons."""


@dataclass(frozen=True)
class Estimate:
    """A measured value with the ends of its 95 % interval; both None when there were too few runs."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def half_width(self) -> float | None:
        """Half of the interval's length, or None without one."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2

    def contains(self, value: float) -> bool:
        """Whether there is an interval, and `value` lies strictly inside of it."""
        return self.low is not None and self.high is not None and self.low < value < self.high

    def scaled(self, factor: float) -> "Estimate":
        """The same estimate in another unit; `factor` must be positive."""
        low, high = self.low, self.high
        return Estimate(
            None if self.value is None else self.value * factor,
            None if low is None else low * factor,
            None if high is None else high * factor,
        )


NOTHING = Estimate(None)


@dataclass(frozen=True)
class Contrast:
    """A mean difference of two rows on the scale of their intervals.

    Attributes:
        change: The difference.
        error: Its standard error; None where there are too few runs.
        freedom: Degrees of freedom of that.
        pairs: Blocks that both rows have; 0 where the rows were compared unpaired.
    """

    change: float
    error: float | None = None
    freedom: float = 0.0
    pairs: int = 0

    @property
    def estimate(self) -> Estimate:
        """The difference with Student's interval."""
        if self.error is None:
            return Estimate(self.change)
        reach = student(self.freedom) * self.error
        return Estimate(self.change, self.change - reach, self.change + reach)

    @property
    def p_value(self) -> float | None:
        """Of no difference, by Student's test, two-sided; None without an error."""
        from scipy.special import stdtr

        if self.error is None:
            return None
        if self.error == 0:
            return 1.0 if self.change == 0 else 0.0
        return float(2 * stdtr(self.freedom, -abs(self.change) / self.error))

    def pairs_to_settle(self, distance: float, most: int = 50) -> int | None:
        """Blocks after which the interval would reach no further than `distance`, if runs spread as seen.

        None where more than `most` would be needed, or the spread is not known.
        """
        if self.error is None or self.pairs < 2 or distance <= 0:
            return None
        for pairs in range(self.pairs, most + 1):
            freedom = self.freedom * (pairs - 1) / (self.pairs - 1)
            if student(freedom) * self.error * math.sqrt(self.pairs / pairs) <= distance:
                return pairs
        return None


@cache
def student(freedom: float) -> float:
    """Quantile of Student's t that leaves half of what is not `CONFIDENCE` above it."""
    from scipy.special import stdtrit  # scipy.stats takes half a second to import; this is its quantile

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def holm(values: Mapping[K, float]) -> dict[K, float]:
    """P values corrected for their number: Holm, "A simple sequentially rejective multiple test procedure".

    Scandinavian Journal of Statistics 6 (1979). Below `SIGNIFICANT` all together err in no more than that
    share.
    """
    corrected: dict[K, float] = {}
    largest = 0.0
    for index, key in enumerate(sorted(values, key=lambda key: values[key])):
        largest = max(largest, min(1.0, (len(values) - index) * values[key]))
        corrected[key] = largest
    return {key: corrected[key] for key in values}


@dataclass(frozen=True)
class Scale:
    """A monotonic transform: where values may lie, how to get there, and how to come back."""

    name: str
    forward: Callable[[float], float]
    back: Callable[[float], float]
    """Takes any number: what lies outside of the scale comes back as its end."""
    holds: Callable[[float], bool]
    centre: Callable[[Sequence[float]], float] = fmean
    """The mean that is reported, in the values' own unit."""

    def ends(self, centre: float, reach: float) -> tuple[float, float]:
        """`centre` less and plus `reach`, which is a length on the scale; always about `centre`."""
        if reach == 0:  # going there and back would round
            return centre, centre
        middle = self.forward(centre)
        return min(centre, self.back(middle - reach)), max(centre, self.back(middle + reach))


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive values."""
    # Against the first value, so that equal values come out as they went in.
    return values[0] * math.exp(fmean([math.log(value / values[0]) for value in values]))


def exponential(value: float) -> float:
    """exp(value), infinite where that is beyond the largest float."""
    return math.exp(value) if value < 700 else math.inf


def _sine_squared(angle: float) -> float:
    return math.sin(min(max(angle, 0.0), math.pi / 2)) ** 2


LINEAR = Scale("linear", lambda value: value, lambda value: value, math.isfinite)
LOGARITHM = Scale(
    "logarithm", math.log, exponential, lambda value: 0 < value < math.inf, centre=geometric_mean
)
ARCSINE = Scale(
    "arcsine", lambda value: math.asin(math.sqrt(value)), _sine_squared, lambda value: 0 <= value <= 1
)


def quality_scale(bounded: bool | None, values: Iterable[float]) -> Scale:
    """Scale of a metric: ARCSINE if it is known to lie in [0, 1] and no finite value says otherwise."""
    known = [value for value in values if math.isfinite(value)]
    return ARCSINE if bounded and all(0 <= value <= 1 for value in known) else LINEAR


def decimals(scale: Scale, values: Iterable[float]) -> int:
    """Decimals of a metric that tell a fiftieth of it by two digits; three where it lies in [0, 1]."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if scale is ARCSINE or not sizes:
        return 3
    return max(0, 1 - math.floor(math.log10(fmean(sizes) / 50)))


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
