"""Estimates with 95 % intervals, and the quantiles that they need.

One run gives no interval, even where the spread of other rows is known: nothing in it shows that its own is
the same. What is reported, and why in this form: Hoefler and Belli, "Scientific benchmarking of parallel
computing systems", SC15 (2015), rules 3 to 8.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
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
