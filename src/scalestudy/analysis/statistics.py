"""Estimates with 95 % intervals (Hoefler and Belli, SC15, 2015, rules 3 to 8), and their scales.

Positive quantities (throughput, seconds) vary by factors, so their intervals are computed on logarithms. A
metric in [0, 1] is transformed to asin(sqrt(q)), on which the variance of a proportion does not depend on its
value (Anscombe, Biometrika 35, 1948) and exactly 0 and 1 are allowed. Any other metric keeps its own scale.

Runs come in randomised blocks. Those of one seed form a block: they share split, initial weights and hour.
Comparing rows within blocks cancels drift and the effect of the seed (Fisher, "The design of experiments",
1935; Montgomery, "Design and analysis of experiments", chapter 4). A few seeds say little about a row's own
spread, and rows need not spread alike. So each variance is *moderated*: the mean of its own and of the common
variance of all rows, weighted by degrees of freedom, of which the common variance counts as `PRIOR` (Smyth,
"Linear models and empirical Bayes methods", Statistical Applications in Genetics and Molecular Biology 3,
2004). A single run has the common variance alone.
`tests/analysis/test_coverage.py` simulates how often intervals contain the true value.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

K = TypeVar("K")
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
"""P value below which a difference is significant, after correction for the number of comparisons."""
Values = Mapping[Any, float]
"""Values of a row's runs, by block."""
PRIOR = 0.6
"""Degrees of freedom of the common variance. Smyth estimates them from thousands of genes; a dozen rows are
too few for that. With so little weight, intervals of two blocks hold for a row that spreads five times as far
as the others; they are half as wide again as with two degrees, those of five blocks a tenth."""
SINGLE = 2.0
"""The same for a row of one run, which has no spread of its own to be weighed against."""
WIDEST = 3.0
"""Deviations count up to this multiple of the median row's in a common variance, so that a wild row does not
widen the intervals of all others (Phipson et al., Annals of Applied Statistics 10, 2016)."""
ROUNDING = 1e-12
"""Deviations below this share of the largest value are rounding errors."""
MOST_PAIRED, NEIGHBOURS = 400, 50
"""Number of rows up to which all pairs are compared; otherwise each row is compared with so many others."""


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


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive values."""
    # Relative to the first value, so that the mean of equal values is exact.
    logarithms = [math.log(value / values[0]) for value in values]
    return values[0] * math.exp(fmean(logarithms))


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
        low, high = self.back(middle - reach), self.back(middle + reach)
        # The mean that is reported need not be the middle on the scale: an arithmetic mean on asin(sqrt(q)).
        return min(centre, low), max(centre, high)


LINEAR = Scale(float, float, math.isfinite)
LOGARITHM = Scale(
    math.log, exponential, lambda value: 0 < value < math.inf, geometric_mean
)
ARCSINE = Scale(
    lambda value: math.asin(math.sqrt(value)),
    lambda angle: math.sin(min(max(angle, 0.0), math.pi / 2)) ** 2,
    lambda value: 0 <= value <= 1,
)


def quality_scale(bounded: bool | None, values: Iterable[float]) -> Scale:
    """Scale of a metric: ARCSINE if it is known to lie in [0, 1] and all finite values do, else LINEAR."""
    finite = [value for value in values if math.isfinite(value)]
    if bounded and all(0 <= value <= 1 for value in finite):
        return ARCSINE
    return LINEAR


def quality_decimals(scale: Scale, values: Iterable[float]) -> int:
    """Decimals that show a fiftieth of a metric with two digits; three for metrics in [0, 1]."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if scale is ARCSINE or not sizes:
        return 3
    return max(0, 1 - math.floor(math.log10(fmean(sizes) / 50)))


class Variance(NamedTuple):
    """Variance of a single run, and its degrees of freedom."""

    value: float
    freedom: float


class Design(NamedTuple):
    """Common spread of rows that are comparable.

    Attributes:
        within: Variance of a run about its row's mean, including the effect of blocks.
        residual: Variance after removing the effect of blocks; None if no rows share two blocks.
    """

    within: Variance
    residual: Variance | None


def design_of(rows: Sequence[Values]) -> Design | None:
    """Return the common spread of rows; None if no row has two runs.

    `rows` holds the values of each row's runs by block; finite, on the scale of the intervals.
    """
    import numpy as np

    rows = [values for values in rows if len(values) > 1]
    if not rows:
        return None
    packed = np.full((len(rows), max(map(len, rows))), np.nan)
    for line, values in zip(packed, rows, strict=True):
        line[: len(values)] = [*values.values()]
    floor = (ROUNDING * float(np.nanmax(np.abs(packed)))) ** 2
    own = _common(packed, floor, np.arange(len(rows))[None])
    # Blocks cancel in the difference of two rows: what is left is the residual.
    table = _by_shared_block(rows)
    first, second = _pairs(len(rows))
    pairs = _common(table[first] - table[second], floor, np.stack([first, second]))
    assert own is not None
    if pairs is None:
        return Design(own, None)
    # The mean over all pairs is the residual mean square of row + block, which has this many degrees.
    of_all = len(rows) * (len(rows) - 1) / 2 / len(first)
    residual = Variance(pairs.value / 2, 2 * pairs.freedom * of_all / len(rows))
    # Runs of one block are no independent draws, so the variance that includes its effect has fewer degrees.
    return Design(own._replace(freedom=_satterthwaite(own, residual)), residual)


def _by_shared_block(rows: Sequence[Values]) -> "Any":
    """Values [rows, blocks] of the blocks that several rows share; missing values are NaN."""
    import numpy as np

    counts = Counter(block for row in rows for block in row)
    places: dict[Any, int] = {}
    for block, count in counts.items():
        if count > 1:
            places[block] = len(places)
    table = np.full((len(rows), len(places)), np.nan)
    for line, values in zip(table, rows, strict=True):
        for block, value in values.items():
            if block in places:
                line[places[block]] = value
    return table


def _pairs(count: int) -> "tuple[Any, Any]":
    """Both rows of every pair; of many rows, each with the next `NEIGHBOURS`, which is a sample of them."""
    import numpy as np

    if count <= MOST_PAIRED:
        return np.triu_indices(count, 1)
    first = np.repeat(np.arange(count), NEIGHBOURS)
    return first, (first + np.tile(np.arange(1, NEIGHBOURS + 1), count)) % count


def _common(values: "Any", floor: float, members: "Any") -> Variance | None:
    """Mean variance of the lines of `values` [lines, blocks], and the sum of their degrees of freedom.

    Missing values are NaN. None if no line has two values. `members` [1 or 2, lines] are the rows of each
    line: one, or both whose differences it holds.
    """
    import numpy as np

    counts = (~np.isnan(values)).sum(1)
    known = counts > 1
    values, freedom, members = values[known], counts[known] - 1, members[:, known]
    if not len(values):
        return None
    deviations = values - np.nanmean(values, 1, keepdims=True)
    variances = np.nansum(deviations**2, 1) / freedom
    # Equal values may differ by a rounding error, which would pass for a spread.
    variances[variances <= floor] = 0.0
    limited = np.minimum(variances, WIDEST**2 * _of_median_row(variances, members))
    return Variance(float(np.average(limited, weights=freedom)), float(freedom.sum()))


def _of_median_row(variances: "Any", members: "Any") -> float:
    """The median over rows of the median variance of each row's lines.

    The median over pairs would be that of a wild row among three, which is in two of the three pairs. Of an
    even number, the lower one counts.
    """
    import numpy as np

    rows, repeated = members.ravel(), np.tile(variances, len(members))
    order = np.lexsort((repeated, rows))
    _, starts, sizes = np.unique(rows[order], return_index=True, return_counts=True)
    of_rows = np.sort(repeated[order][starts + (sizes - 1) // 2])
    return float(of_rows[(len(of_rows) - 1) // 2])


def _satterthwaite(within: Variance, residual: Variance) -> float:
    """Degrees of freedom of `within`: a part of it is the residual, the rest comes from a few blocks.

    Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics 2 (1946).
    """
    of_blocks = within.freedom - residual.freedom
    squares = within.value * within.freedom
    if not squares or of_blocks <= 0:
        return within.freedom
    share = min(1.0, residual.value * residual.freedom / squares)
    return 1 / ((1 - share) ** 2 / of_blocks + share**2 / residual.freedom)


def _moderate(
    values: Sequence[float], common: Variance | None, per_run: float = 1.0
) -> Variance | None:
    """Moderated variance of a run; None if nothing is known about it.

    `values` are single runs, or differences of `per_run` runs each.
    """
    freedom = len(values) - 1
    if not freedom:
        if common is None:
            return None
        return Variance(common.value, min(SINGLE, common.freedom))
    own = _variance(values) / per_run
    if common is None:
        return Variance(own, freedom)
    value = (PRIOR * common.value + freedom * own) / (PRIOR + freedom)
    return Variance(value, min(PRIOR + freedom, common.freedom))


def _variance(values: Sequence[float]) -> float:
    """Sample variance of at least two values."""
    # The mean of equal values may be off by a rounding error.
    if min(values) == max(values):
        return 0.0
    centre = fmean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def run_variance(values: Sequence[float], design: Design | None) -> Variance | None:
    """Variance of a run about its row's mean; None for a single run without a design."""
    return _moderate(values, design.within if design else None)


def mean(
    values: Sequence[float], scale: Scale, design: Design | None = None
) -> Estimate:
    """Mean of runs with Student's interval: geometric on the logarithmic scale, else arithmetic.

    If a value is not finite (a diverged run), there is no mean. If a value lies outside the scale (a
    throughput of 0), the mean is arithmetic and has no interval.
    """
    if not values or not all(map(math.isfinite, values)):
        return NOTHING
    if not all(map(scale.holds, values)):
        return Estimate(fmean(values))
    centre = scale.centre(values)
    single = run_variance([scale.forward(value) for value in values], design)
    if single is None:
        return Estimate(centre)
    reach = student(single.freedom) * math.sqrt(single.value / len(values))
    return Estimate(centre, *scale.ends(centre, reach))


def contrast(
    ours: Values,
    theirs: Values,
    design: Design | None = None,
    their_design: Design | None = None,
    between: Variance | None = None,
) -> Contrast:
    """Mean of one row minus the mean of another: within blocks if possible, else unpaired.

    Rows are paired if they share two blocks, or one if a row has no other and the residual is known.

    Args:
        ours: Values of the first row, on the scale of the interval.
        theirs: Values of the second row.
        design: Design of the first row; if None, its own variance is used.
        their_design: Design of the second row. If the designs differ, the degrees of freedom are those of the
            pairs or, unpaired, Welch's (Biometrika 34, 1947).
        between: Variance of what all runs of a row share, such as its hour, if the rows were not run
            together; see `analysis.rounds`.
    """
    same_design = design if design and design is their_design else None
    residual = same_design.residual if same_design else None
    common = [block for block in ours if block in theirs]
    single_pair = len(common) == 1 and min(len(ours), len(theirs)) == 1
    if len(common) > 1 or (single_pair and residual):
        # A difference has the variance of two runs.
        changes = [ours[block] - theirs[block] for block in common]
        single = _moderate(changes, residual, per_run=2.0)
        assert single is not None
        error = math.sqrt(2 * single.value / len(changes))
        return Contrast(fmean(changes), error, single.freedom, len(changes))
    change = fmean(ours.values()) - fmean(theirs.values())
    first = run_variance([*ours.values()], design)
    second = run_variance([*theirs.values()], their_design)
    if first is None or second is None:
        return Contrast(change)
    total = _sum_of(
        Variance(first.value / len(ours), first.freedom),
        Variance(second.value / len(theirs), second.freedom),
    )
    if same_design:
        # Both variances contain the common one, which has no more degrees than it was estimated with.
        freedom = min(total.freedom, same_design.within.freedom)
        total = total._replace(freedom=freedom)
    if between is not None:
        # Each row has its own hour.
        total = _sum_of(total, Variance(2 * between.value, between.freedom))
    return Contrast(change, math.sqrt(total.value), total.freedom)


def _sum_of(first: Variance, second: Variance) -> Variance:
    """Sum of two independent variances (Welch 1947)."""
    total = first.value + second.value
    if not total:
        return Variance(0.0, min(first.freedom, second.freedom))
    shares = first.value / total, second.value / total
    inverse = shares[0] ** 2 / first.freedom + shares[1] ** 2 / second.freedom
    return Variance(total, 1 / inverse)
