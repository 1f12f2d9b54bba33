"""Means, ratios and differences over repeated runs, each with a 95 % interval or none at all.

One run gives no interval, even where other rows' spread is known: nothing in it shows that its own is
the same. Two runs or more give one of Student's kind, from their own spread or from one that was pooled
over the rows of a study (`pooling`), on the scale that fits the quantity (`scales`).

Sources: Student's t for means; Welch, "The generalization of 'Student's' problem when several different
population variances are involved", Biometrika 34 (1947), for what is not paired; the paired t for what
is. Ends are brought back from the scale by the delta method, so that an interval never leaves the
quantity's own range; those of a difference are joined by squares and sums from those of its two parts
(Newcombe, "Interval estimation for the difference between independent proportions", Statistics in
Medicine 17, 1998; Zou and Donner, Statistics in Medicine 27, 2008), which on a linear scale is Student's
or Welch's interval itself. What is reported, and why in this form: Hoefler and Belli, "Scientific
benchmarking of parallel computing systems", SC15 (2015), rules 3 to 8.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

from scalestudy.analysis.scales import LINEAR, Scale, exponential

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


@dataclass(frozen=True)
class Spread:
    """Variance of a single run on its scale, and how well that is known."""

    variance: float
    freedom: float
    """Degrees of freedom of the variance."""
    rows: int = 1
    """Number of rows that it was pooled over."""

    def at_least(self, own: "Spread") -> "Spread":
        """This spread, with the other's variance where that is larger."""
        return replace(self, variance=max(self.variance, own.variance))

    def reach(self, runs: int) -> float:
        """Half of the interval of a mean over so many runs, on the scale."""
        return student(self.freedom) * math.sqrt(self.variance / runs)


def own_spread(values: Sequence[float], scale: Scale = LINEAR) -> Spread:
    """Spread of two values or more about their own mean."""
    return Spread(variance([scale.forward(value) for value in values]), len(values) - 1)


def variance(values: Sequence[float]) -> float:
    """Sample variance of two values or more: `statistics.variance`, which adds fractions, in floats."""
    if min(values) == max(values):  # whose mean may be off by a rounding
        return 0.0
    centre = fmean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def mean(values: Sequence[float], scale: Scale = LINEAR, spread: Spread | None = None) -> Estimate:
    """Mean and Student's interval of independent runs.

    Args:
        values: One value a run, in the quantity's own unit.
        scale: Where the interval is computed. The mean is the scale's own: geometric on logarithms.
        spread: Spread of a run where it is known better than from `values` alone.

    Values that are not finite (a diverged run) leave nothing to average: the result is empty. Values that
    the scale does not hold (a throughput of 0) have an arithmetic mean without an interval.
    """
    if not _finite(values):
        return NOTHING
    if not all(scale.holds(value) for value in values):
        return Estimate(fmean(values))
    centre = scale.centre(values)
    if len(values) < 2:
        return Estimate(centre)
    spread = spread or own_spread(values, scale)
    return Estimate(centre, *scale.ends(centre, spread.reach(len(values))))


def difference(
    values: Sequence[float],
    reference: Sequence[float],
    scale: Scale = LINEAR,
    spreads: tuple[Spread, Spread] | None = None,
) -> Estimate:
    """Arithmetic mean of `values` less that of `reference`, unpaired, with Welch's interval."""
    if not _finite(values) or not _finite(reference):
        return NOTHING
    first, second = fmean(values), fmean(reference)
    if min(len(values), len(reference)) < 2 or not all(map(scale.holds, [*values, *reference])):
        return Estimate(first - second)
    ours, theirs = spreads or (own_spread(values, scale), own_spread(reference, scale))
    parts = ours.variance / len(values), theirs.variance / len(reference)
    quantile = student(welch(ours, theirs, *parts))
    return _joined(first, quantile * math.sqrt(parts[0]), second, quantile * math.sqrt(parts[1]), scale)


def paired_difference(
    values: Sequence[float], reference: Sequence[float], scale: Scale = LINEAR, shared: Spread | None = None
) -> Estimate:
    """Arithmetic mean of `values` less that of `reference`, paired one by one.

    Args:
        values: One value a pair.
        reference: The other value of each pair, in the same order.
        scale: Where the interval is computed.
        shared: Spread of a run once what its pair has in common is taken away, where that is known better
            than from the pairs alone; theirs (half the variance of the differences) when it is larger.
    """
    if not _finite(values) or not _finite(reference):
        return NOTHING
    first, second = fmean(values), fmean(reference)
    if len(values) < 2 or not all(map(scale.holds, [*values, *reference])):
        return Estimate(first - second)
    changes = [scale.forward(a) - scale.forward(b) for a, b in zip(values, reference, strict=True)]
    own = Spread(variance(changes) / 2, len(changes) - 1)
    reach = (shared.at_least(own) if shared else own).reach(len(values))
    return _joined(first, reach, second, reach, scale)


def ratio(
    values: Sequence[float], reference: Sequence[float], spreads: tuple[Spread, Spread] | None = None
) -> Estimate:
    """Ratio of the geometric means of positive values, unpaired, with Welch's interval on logarithms.

    Speed-ups multiply, so their spread is symmetric on logarithms: exp(mean log v - mean log r).
    """
    if not _finite(values) or not _finite(reference) or min(*values, *reference) <= 0:
        return NOTHING
    logs = difference(
        [math.log(value) for value in values], [math.log(value) for value in reference], LINEAR, spreads
    )
    return Estimate(_exp(logs.value), _exp(logs.low), _exp(logs.high))


@cache
def student(freedom: float) -> float:
    """Quantile of Student's t that leaves half of what is not `CONFIDENCE` above it."""
    from scipy.special import stdtrit  # scipy.stats takes half a second to import; this is its quantile

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def welch(ours: Spread, theirs: Spread, part_a: float, part_b: float) -> float:
    """Degrees of freedom of the sum of two means' variances."""
    if ours.rows > 1 and theirs.rows > 1:  # one pool, estimated once
        return min(ours.freedom, theirs.freedom)
    total = part_a + part_b
    if total == 0 or (part_a / total) ** 2 + (part_b / total) ** 2 == 0:
        return ours.freedom + theirs.freedom
    # Shares instead of squared variances: those underflow for values that hardly differ.
    return 1 / ((part_a / total) ** 2 / ours.freedom + (part_b / total) ** 2 / theirs.freedom)


def _joined(first: float, reach: float, second: float, reach_of_second: float, scale: Scale) -> Estimate:
    """First less second, each with its reach on the scale: square and add (Newcombe; Zou and Donner)."""
    low, high = scale.ends(first, reach)
    low_of_second, high_of_second = scale.ends(second, reach_of_second)
    change = first - second
    return Estimate(
        change,
        change - math.hypot(first - low, high_of_second - second),
        change + math.hypot(high - first, second - low_of_second),
    )


def _finite(values: Sequence[float]) -> bool:
    return len(values) > 0 and all(math.isfinite(value) for value in values)


def _exp(value: float | None) -> float | None:
    return None if value is None else exponential(value)
