"""Estimates with 95 % intervals (Hoefler and Belli, SC15, 2015, rules 3 to 8), and tests of differences."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from scalestudy.config.metric_senses import Better, gain

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
        # The ends change places.
        low = 1 / self.high
        high = 1 / self.low
        return Estimate(1 / self.value, low, high)

    def times(self, other: "Estimate") -> "Estimate":
        """Product of independent estimates; errors on logarithms add in quadrature (Zou and Donner 2008)."""
        if self.value is None or other.value is None:
            return NOTHING
        # An interval needs both: one of them alone would pass for the whole doubt.
        value = self.value * other.value
        if (
            self.low is None
            or self.high is None
            or other.low is None
            or other.high is None
        ):
            return Estimate(value)
        our_down, our_up = self._reaches(self.value, self.low, self.high)
        their_down, their_up = self._reaches(other.value, other.low, other.high)
        down = math.hypot(our_down, their_down)
        up = math.hypot(our_up, their_up)
        low = value * math.exp(-down)
        high = value * math.exp(up)
        return Estimate(value, low, high)

    @staticmethod
    def _reaches(value: float, low: float, high: float) -> tuple[float, float]:
        """How far an interval reaches down and up from its value, as logarithms of ratios."""
        down = math.log(value / low)
        up = math.log(high / value)
        return down, up


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
        low = self.change - reach
        high = self.change + reach
        return Estimate(self.change, low, high)

    @property
    def p_value(self) -> float | None:
        """Two-sided P value of Student's test of no difference; None without an error."""
        from scipy.special import stdtr

        if self.error is None:
            return None
        if self.error == 0:
            # Student's statistic is 0 / 0 for equal means, else infinite.
            if self.change == 0:
                return 1.0
            return 0.0
        statistic = abs(self.change) / self.error
        return float(2 * stdtr(self.freedom, -statistic))


@cache
def student(freedom: float) -> float:
    """Two-sided quantile of Student's t for `CONFIDENCE`."""
    # The quantile of scipy.stats, which takes half a second to import.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def holm(values: Mapping[K, float]) -> dict[K, float]:
    """P values corrected for their number (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    corrected = dict(values)
    largest = 0.0
    for index, key in enumerate(sorted(values, key=lambda key: values[key])):
        # The smallest is compared with all hypotheses, each further one with those that are left.
        left = len(values) - index
        own = min(1.0, left * values[key])
        # A corrected P value is no smaller than one before it, so that their order stays.
        largest = max(largest, own)
        corrected[key] = largest
    return corrected


def gains_of(low: float, high: float, better: Better) -> tuple[float, float]:
    """The ends of an interval as gains, which are positive for a better model, the lower end first."""
    first = gain(low, better)
    second = gain(high, better)
    if first <= second:
        return first, second
    return second, first
