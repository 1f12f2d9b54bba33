"""Estimates with 95 % intervals (Hoefler and Belli, SC15, 2015, rules 3 to 8), and their scales.

Positive quantities (throughput, seconds) vary by factors, so their intervals are computed on logarithms. A
metric in [0, 1] is transformed to asin(sqrt(q)), on which the variance of a proportion does not depend on its
value (Anscombe, Biometrika 35, 1948) and exactly 0 and 1 are allowed. Any other metric keeps its own scale.
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
"""P value below which a difference is significant, after correction for the number of comparisons."""


@dataclass(frozen=True)
class Estimate:
    """A measured value with its 95 % interval; `low` and `high` are None if there were too few runs."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def half_width(self) -> float | None:
        """Half of the interval's length, or None without one."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def contains(self, value: float) -> bool:
        """Whether there is an interval and `value` lies strictly inside it."""
        return self.low is not None and self.high is not None and self.low < value < self.high

    def map(self, function: Callable[[float], float]) -> "Estimate":
        """Apply an increasing function to the value and its interval."""
        return Estimate(*(None if x is None else function(x) for x in (self.value, self.low, self.high)))

    def scaled(self, factor: float) -> "Estimate":
        """Convert to another unit; `factor` must be positive."""
        return self.map(lambda value: value * factor)

    def inverse(self) -> "Estimate":
        """1 / estimate; must be positive, and 0 gives `NOTHING`."""
        if not self.value:
            return NOTHING
        if not self.low or not self.high:
            return Estimate(1 / self.value)
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low)

    def times(self, other: "Estimate") -> "Estimate":
        """Product of independent estimates; errors on logarithms add in quadrature (Zou and Donner 2008)."""
        if self.value is None or other.value is None:
            return NOTHING
        value = self.value * other.value
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return Estimate(value)
        down = math.hypot(math.log(self.value / self.low), math.log(other.value / other.low))
        up = math.hypot(math.log(self.high / self.value), math.log(other.high / other.value))
        return Estimate(value, value * math.exp(-down), value * math.exp(up))


NOTHING = Estimate(None)
ONE = Estimate(1.0, 1.0, 1.0)
"""A quantity divided by itself."""


@dataclass(frozen=True)
class Contrast:
    """Mean difference of two rows on the scale of their intervals.

    Attributes:
        change: The difference.
        error: Its standard error; None if there are too few runs.
        freedom: Degrees of freedom of `error`.
        pairs: Blocks that both rows have; 0 if the rows were compared unpaired.
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
        """Two-sided P value of Student's test of no difference; None without an error."""
        from scipy.special import stdtr

        if self.error is None:
            return None
        if self.error == 0:
            return 1.0 if self.change == 0 else 0.0
        return float(2 * stdtr(self.freedom, -abs(self.change) / self.error))


@cache
def student(freedom: float) -> float:
    """Two-sided quantile of Student's t for `CONFIDENCE`."""
    from scipy.special import stdtrit  # scipy.stats takes half a second to import; this is its quantile

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def holm(values: Mapping[K, float]) -> dict[K, float]:
    """P values corrected for their number (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    corrected: dict[K, float] = {}
    largest = 0.0
    for index, key in enumerate(sorted(values, key=lambda key: values[key])):
        largest = max(largest, min(1.0, (len(values) - index) * values[key]))
        corrected[key] = largest
    return {key: corrected[key] for key in values}


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive values."""
    # Relative to the first value, so that the mean of equal values is exact.
    return values[0] * math.exp(fmean([math.log(value / values[0]) for value in values]))


def exponential(value: float) -> float:
    """exp(value); infinity instead of an overflow."""
    return math.exp(value) if value < 700 else math.inf


@dataclass(frozen=True)
class Scale:
    """A monotonic transform with its inverse, its domain, and the mean that is reported on it.

    `back` accepts any number and clips it to the range of `forward`.
    """

    forward: Callable[[float], float]
    back: Callable[[float], float]
    holds: Callable[[float], bool]
    centre: Callable[[Sequence[float]], float] = fmean

    def ends(self, centre: float, reach: float) -> tuple[float, float]:
        """Return `centre` minus and plus `reach`, a length on the scale; the result encloses `centre`."""
        if reach == 0:  # avoid the rounding error of the transform
            return centre, centre
        middle = self.forward(centre)
        return min(centre, self.back(middle - reach)), max(centre, self.back(middle + reach))


LINEAR = Scale(float, float, math.isfinite)
LOGARITHM = Scale(math.log, exponential, lambda value: 0 < value < math.inf, geometric_mean)
ARCSINE = Scale(
    lambda value: math.asin(math.sqrt(value)),
    lambda angle: math.sin(min(max(angle, 0.0), math.pi / 2)) ** 2,
    lambda value: 0 <= value <= 1,
)


def quality_scale(bounded: bool | None, values: Iterable[float]) -> Scale:
    """Scale of a metric: ARCSINE if it is known to lie in [0, 1] and all finite values do, else LINEAR."""
    return ARCSINE if bounded and all(0 <= x <= 1 for x in values if math.isfinite(x)) else LINEAR


def decimals(scale: Scale, values: Iterable[float]) -> int:
    """Decimals that show a fiftieth of a metric with two digits; three for metrics in [0, 1]."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if scale is ARCSINE or not sizes:
        return 3
    return max(0, 1 - math.floor(math.log10(fmean(sizes) / 50)))
