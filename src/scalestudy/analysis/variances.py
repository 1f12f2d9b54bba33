"""Variances of runs: of a row alone, common to rows that are comparable, and moderated.

A few seeds say little about a row's own spread, and rows need not spread alike. So each variance is
*moderated*: the mean of its own and of the common variance of all rows, weighted by degrees of freedom, of
which the common variance counts as `PRIOR` (Smyth, "Linear models and empirical Bayes methods", Statistical
Applications in Genetics and Molecular Biology 3, 2004). A single run has the common variance alone.
`tests/analysis/test_coverage.py` simulates how often intervals contain the true value.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

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

    # A single run has no spread of its own.
    rows = [values for values in rows if len(values) > 1]
    if not rows:
        return None
    count = len(rows)
    packed = _packed(rows)
    largest = float(np.nanmax(np.abs(packed)))
    floor = (ROUNDING * largest) ** 2
    itself = np.arange(count)
    own = _common(packed, floor, itself[None])
    # Blocks cancel in the difference of two rows: what is left is the residual.
    # A block that one row has alone is in no difference.
    table = _by_shared_block(rows)
    first, second = _pairs(count)
    differences = table[first] - table[second]
    compared = np.stack([first, second])
    pairs = _common(differences, floor, compared)
    assert own is not None
    if pairs is None:
        return Design(own, None)
    # The mean over all pairs is the residual mean square of row + block, which has this many degrees.
    every_pair = count * (count - 1) / 2
    of_all = every_pair / len(first)
    degrees = 2 * pairs.freedom * of_all / count
    # A difference has the variance of two runs.
    residual = Variance(pairs.value / 2, degrees)
    # Runs of one block are no independent draws, so the variance that includes its effect has fewer degrees.
    within = own._replace(freedom=_satterthwaite(own, residual))
    return Design(within, residual)


def run_variance(
    values: Sequence[float],
    design: Design | None,
) -> Variance | None:
    """Variance of a run about its row's mean; None for a single run without a design."""
    common = None
    if design is not None:
        common = design.within
    return moderate(values, common)


def moderate(
    values: Sequence[float],
    common: Variance | None,
    per_run: float = 1.0,
) -> Variance | None:
    """Moderated variance of a run; None if nothing is known about it.

    `values` are single runs, or differences of `per_run` runs each.
    """
    freedom = len(values) - 1
    # A single run says nothing about its spread, but the other rows may.
    if not freedom:
        if common is None:
            return None
        return Variance(common.value, min(SINGLE, common.freedom))
    own = _variance(values) / per_run
    if common is None:
        return Variance(own, freedom)
    weight = PRIOR + freedom
    squares = PRIOR * common.value + freedom * own
    value = squares / weight
    # The degrees of a row are part of the common ones, so that it has no more than these.
    return Variance(value, min(weight, common.freedom))


def add_variances(first: Variance, second: Variance) -> Variance:
    """Sum of two independent variances (Welch 1947)."""
    total = first.value + second.value
    if not total:
        # Without any spread, Welch's formula would divide zero by zero.
        return Variance(0.0, min(first.freedom, second.freedom))
    first_share = first.value / total
    second_share = second.value / total
    of_first = first_share**2 / first.freedom
    of_second = second_share**2 / second.freedom
    return Variance(total, 1 / (of_first + of_second))


def _packed(rows: Sequence[Values]) -> "Any":
    """Values [rows, most runs of a row], filled up with NaN: a study of thousands of rows is computed at once."""
    import numpy as np

    longest = max(map(len, rows))
    packed = np.full((len(rows), longest), np.nan)
    for line, values in zip(packed, rows, strict=True):
        known = line[: len(values)]
        known[:] = [*values.values()]
    return packed


def _by_shared_block(rows: Sequence[Values]) -> "Any":
    """Values [rows, blocks] of the blocks that several rows share; missing values are NaN."""
    import numpy as np

    counts: Counter[Any] = Counter()
    for row in rows:
        counts.update(row.keys())
    places: dict[Any, int] = {}
    for block, count in counts.items():
        if count > 1:
            places[block] = len(places)
    shape = (len(rows), len(places))
    table = np.full(shape, np.nan)
    for line, values in zip(table, rows, strict=True):
        for block, value in values.items():
            if block in places:
                place = places[block]
                line[place] = value
    return table


def _pairs(count: int) -> "tuple[Any, Any]":
    """Both rows of every pair; of many rows, each with the next `NEIGHBOURS`, which is a sample of them."""
    import numpy as np

    if count <= MOST_PAIRED:
        return np.triu_indices(count, 1)
    # All pairs of the thousands of rows of an imported table took gigabytes.
    rows = np.arange(count)
    first = np.repeat(rows, NEIGHBOURS)
    distances = np.arange(1, NEIGHBOURS + 1)
    steps = np.tile(distances, count)
    # The last rows are compared with the first ones.
    second = (first + steps) % count
    return first, second


def _common(values: "Any", floor: float, members: "Any") -> Variance | None:
    """Mean variance of the lines of `values` [lines, blocks], and the sum of their degrees of freedom.

    Missing values are NaN. None if no line has two values. `members` [1 or 2, lines] are the rows of each
    line: one, or both whose differences it holds.
    """
    import numpy as np

    measured = ~np.isnan(values)
    counts = measured.sum(1)
    known = counts > 1
    if not known.any():
        return None
    values = values[known]
    members = members[:, known]
    freedom = counts[known] - 1
    means = np.nanmean(values, 1, keepdims=True)
    deviations = values - means
    squares = np.nansum(deviations**2, 1)
    variances = squares / freedom
    # Equal values may differ by a rounding error, which would pass for a spread.
    variances[variances <= floor] = 0.0
    most = WIDEST**2 * _of_median_row(variances, members)
    limited = np.minimum(variances, most)
    mean = np.average(limited, weights=freedom)
    degrees = freedom.sum()
    return Variance(float(mean), float(degrees))


def _of_median_row(variances: "Any", members: "Any") -> float:
    """The median over rows of the median variance of each row's lines.

    The median over pairs would be that of a wild row among three, which is in two of the three pairs. Of an
    even number, the lower one counts.
    """
    import numpy as np

    rows = members.ravel()
    repeated = np.tile(variances, len(members))
    # By row, and by variance within a row, so that the median is the one in the middle.
    order = np.lexsort((repeated, rows))
    rows = rows[order]
    sorted_variances = repeated[order]
    _, starts, sizes = np.unique(
        rows,
        return_index=True,
        return_counts=True,
    )
    middles = starts + (sizes - 1) // 2
    medians = np.sort(sorted_variances[middles])
    middle = (len(medians) - 1) // 2
    return float(medians[middle])


def _satterthwaite(within: Variance, residual: Variance) -> float:
    """Degrees of freedom of `within`: a part of it is the residual, the rest comes from a few blocks.

    Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics 2 (1946).
    """
    of_blocks = within.freedom - residual.freedom
    squares = within.value * within.freedom
    # Without a spread, or without more degrees than the residual has, there is nothing to divide.
    if not squares or of_blocks <= 0:
        return within.freedom
    of_residuals = residual.value * residual.freedom
    # By chance the residual may have more squares than all runs about their means.
    share = min(1.0, of_residuals / squares)
    of_rest = (1 - share) ** 2 / of_blocks
    of_residual = share**2 / residual.freedom
    return 1 / (of_rest + of_residual)


def _variance(values: Sequence[float]) -> float:
    """Sample variance of at least two values."""
    # The mean of equal values may be off by a rounding error.
    if min(values) == max(values):
        return 0.0
    centre = fmean(values)
    squares = [(value - centre) ** 2 for value in values]
    freedom = len(values) - 1
    return math.fsum(squares) / freedom
