"""Estimates with 95 % intervals (Hoefler and Belli, SC15, 2015, rules 3 to 8), and tests of differences."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
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
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2

    def map(self, function: Callable[[float], float]) -> "Estimate":
        """Apply an increasing function to the value and its interval."""

        def applied(number: float | None) -> float | None:
            return None if number is None else function(number)

        return Estimate(applied(self.value), applied(self.low), applied(self.high))

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
        if (
            self.low is None
            or self.high is None
            or other.low is None
            or other.high is None
        ):
            return Estimate(value)
        down = math.hypot(
            math.log(self.value / self.low), math.log(other.value / other.low)
        )
        up = math.hypot(
            math.log(self.high / self.value), math.log(other.high / other.value)
        )
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
    # The quantile of scipy.stats, which takes half a second to import.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def holm(values: Mapping[K, float]) -> dict[K, float]:
    """P values corrected for their number (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    corrected: dict[K, float] = {}
    largest = 0.0
    for index, key in enumerate(sorted(values, key=lambda key: values[key])):
        largest = max(largest, min(1.0, (len(values) - index) * values[key]))
        corrected[key] = largest
    return {key: corrected[key] for key in values}
