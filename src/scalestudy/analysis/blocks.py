"""Means and differences of rows whose runs come in randomised blocks, with moderated variances.

Runs of one seed form a block: they share split, initial weights and hour. Comparing rows within blocks
cancels drift and the effect of the seed (Fisher, "The design of experiments", 1935; Montgomery, "Design and
analysis of experiments", chapter 4). A few seeds say little about a row's own spread, and rows need not
spread alike. So each variance is *moderated*: the mean of its own and of the common variance of all rows,
weighted by degrees of freedom, of which the common variance counts as `PRIOR` (Smyth, "Linear models and
empirical Bayes methods", Statistical Applications in Genetics and Molecular Biology 3, 2004). A single run
has the common variance alone.
`tests/analysis/test_coverage.py` simulates how often intervals contain the true value.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from scalestudy.analysis.statistics import NOTHING, Contrast, Estimate, Scale, student

Values = Mapping[Any, float]
"""Values of a row's runs, by block."""
PRIOR = 2.0
"""Degrees of freedom of the common variance. Smyth estimates them from thousands of genes; a dozen rows are
too few for that. With two, intervals hold for every row even if spreads grow from 1 to 4."""
WIDEST = 3.0
"""Deviations count up to this multiple of the median one in a common variance, so that a wild row does not
widen the intervals of all others (Phipson et al., Annals of Applied Statistics 10, 2016)."""
ROUNDING = 1e-12
"""Deviations below this share of the largest value are rounding errors."""


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
    places = {block: place for place, block in enumerate(dict.fromkeys(b for row in rows for b in row))}
    table = np.full((len(rows), len(places)), np.nan)
    for row, values in zip(table, rows, strict=True):
        row[[places[block] for block in values]] = [*values.values()]
    floor = (ROUNDING * float(np.nanmax(np.abs(table)))) ** 2
    own = _common(table, floor)
    first, second = np.triu_indices(len(rows), 1)
    pairs = _common(table[first] - table[second], floor)
    assert own is not None
    if pairs is None:
        return Design(own, None)
    # The mean over all pairs is the residual mean square of row + block, which has this many degrees.
    residual = Variance(pairs.value / 2, 2 * pairs.freedom / len(rows))
    return Design(own._replace(freedom=_satterthwaite(own, residual)), residual)


def _common(values: "Any", floor: float) -> Variance | None:
    """Mean variance of the rows of `values` [rows, blocks], and the sum of their degrees of freedom.

    Missing values are NaN. None if no row has two values.
    """
    import numpy as np

    counts = (~np.isnan(values)).sum(1)
    values, freedom = values[counts > 1], counts[counts > 1] - 1
    if not len(values):
        return None
    deviations = values - np.nanmean(values, 1, keepdims=True)
    variances = np.nansum(deviations**2, 1) / freedom
    variances[variances <= floor] = 0.0
    median = np.sort(variances)[(len(variances) - 1) // 2]
    limited = np.minimum(variances, WIDEST**2 * median)
    return Variance(float(np.average(limited, weights=freedom)), float(freedom.sum()))


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


def _moderated(values: Sequence[float], common: Variance | None, per_run: float = 1.0) -> Variance | None:
    """Moderated variance of a run; None if nothing is known about it.

    `values` are single runs, or differences of `per_run` runs each.
    """
    freedom = len(values) - 1
    own = _variance(values) / per_run if freedom else 0.0
    if common is None:
        return Variance(own, freedom) if freedom else None
    value = (PRIOR * common.value + freedom * own) / (PRIOR + freedom)
    return Variance(value, min(PRIOR + freedom, common.freedom))


def _variance(values: Sequence[float]) -> float:
    """Sample variance of at least two values."""
    if min(values) == max(values):  # the mean of equal values may be off by a rounding error
        return 0.0
    centre = fmean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def spread(values: Sequence[float], design: Design | None) -> Variance | None:
    """Variance of a run about its row's mean; None for a single run without a design."""
    return _moderated(values, design.within if design else None)


def mean(values: Sequence[float], scale: Scale, design: Design | None = None) -> Estimate:
    """Mean of runs with Student's interval: geometric on the logarithmic scale, else arithmetic.

    If a value is not finite (a diverged run), there is no mean. If a value lies outside the scale (a
    throughput of 0), the mean is arithmetic and has no interval.
    """
    if not values or not all(map(math.isfinite, values)):
        return NOTHING
    if not all(map(scale.holds, values)):
        return Estimate(fmean(values))
    centre = scale.centre(values)
    single = spread([scale.forward(value) for value in values], design)
    if single is None:
        return Estimate(centre)
    reach = student(single.freedom) * math.sqrt(single.value / len(values))
    return Estimate(centre, *scale.ends(centre, reach))


def contrast(
    ours: Values, theirs: Values, design: Design | None = None, their_design: Design | None = None
) -> Contrast:
    """Mean of one row minus the mean of another: within blocks if possible, else unpaired.

    Rows are paired if they share two blocks, or one if a row has no other and the residual is known.

    Args:
        ours: Values of the first row, on the scale of the interval.
        theirs: Values of the second row.
        design: Design of the first row; if None, its own variance is used.
        their_design: Design of the second row. If the designs differ, the degrees of freedom are those of the
            pairs or, unpaired, Welch's (Biometrika 34, 1947).
    """
    common = [block for block in ours if block in theirs]
    residual = design.residual if design and design is their_design else None
    if len(common) > 1 or (common and residual and min(len(ours), len(theirs)) == 1):
        changes = [ours[block] - theirs[block] for block in common]
        single = _moderated(changes, residual, per_run=2.0)
        assert single is not None
        error = math.sqrt(2 * single.value / len(changes))
        return Contrast(fmean(changes), error, single.freedom, len(changes))
    change = fmean(ours.values()) - fmean(theirs.values())
    first, second = spread([*ours.values()], design), spread([*theirs.values()], their_design)
    if first is None or second is None:
        return Contrast(change)
    parts = first.value / len(ours), second.value / len(theirs)
    total = sum(parts)
    freedom = min(first.freedom, second.freedom)
    if total > 0:
        shares = parts[0] / total, parts[1] / total
        freedom = 1 / (shares[0] ** 2 / first.freedom + shares[1] ** 2 / second.freedom)
    if design and design is their_design:  # both variances contain the common one
        freedom = min(freedom, design.within.freedom)
    return Contrast(change, math.sqrt(total), freedom)
