"""Means, ratios and differences over repeated runs, each with a 95 % interval or none at all.

One run has no spread, so it gets no interval: never one that is made up. Sources: Welch, "The
generalization of 'Student's' problem when several different population variances are involved",
Biometrika 34 (1947); Hoefler and Belli, "Scientific benchmarking of parallel computing systems",
SC15 (2015), rules 3 to 8.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

CONFIDENCE = 0.95


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

    def scaled(self, factor: float) -> "Estimate":
        """The same estimate in another unit; `factor` must be positive."""
        low, high = self.low, self.high
        return Estimate(
            None if self.value is None else self.value * factor,
            None if low is None else low * factor,
            None if high is None else high * factor,
        )


NOTHING = Estimate(None)


def mean(values: Sequence[float]) -> Estimate:
    """Mean and Student-t interval of independent runs.

    Values that are not finite (a diverged run) leave nothing to average: the result is empty.
    """
    if not _finite(values):
        return NOTHING
    centre = fmean(values)
    if len(values) < 2:
        return Estimate(centre)
    error = math.sqrt(variance(values) / len(values))
    reach = _student(len(values) - 1) * error
    return Estimate(centre, centre - reach, centre + reach)


def difference(values: Sequence[float], reference: Sequence[float]) -> Estimate:
    """Mean of `values` less mean of `reference`, with Welch's interval."""
    if not _finite(values) or not _finite(reference):
        return NOTHING
    centre = fmean(values) - fmean(reference)
    if len(values) < 2 or len(reference) < 2:
        return Estimate(centre)
    reach = _welch_reach(values, reference)
    return Estimate(centre, centre - reach, centre + reach)


def ratio(values: Sequence[float], reference: Sequence[float]) -> Estimate:
    """Ratio of the geometric means of positive values, with Welch's interval taken on logarithms.

    Speed-ups multiply, so their spread is symmetric on logarithms: exp(mean log v - mean log r).
    """
    if not _finite(values) or not _finite(reference) or min(*values, *reference) <= 0:
        return NOTHING
    logs = difference([math.log(value) for value in values], [math.log(value) for value in reference])
    return Estimate(_exp(logs.value), _exp(logs.low), _exp(logs.high))


def _welch_reach(a: Sequence[float], b: Sequence[float]) -> float:
    part_a, part_b = variance(a) / len(a), variance(b) / len(b)
    total = part_a + part_b
    if total == 0 or (part_a / total) ** 2 + (part_b / total) ** 2 == 0:
        return 0.0
    # Shares instead of squared variances: those underflow for values that hardly differ.
    freedom = 1 / ((part_a / total) ** 2 / (len(a) - 1) + (part_b / total) ** 2 / (len(b) - 1))
    return _student(freedom) * math.sqrt(total)


def _student(freedom: float) -> float:
    from scipy.special import stdtrit  # scipy.stats takes half a second to import; this is its quantile

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def _finite(values: Sequence[float]) -> bool:
    return len(values) > 0 and all(math.isfinite(value) for value in values)


def _exp(value: float | None) -> float | None:
    if value is None:
        return None
    return math.exp(value) if value < 700 else math.inf
