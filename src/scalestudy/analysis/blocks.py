"""Means and differences of rows whose runs come in randomised blocks: row + block + error.

Runs of one seed form a block: they share split, initial weights and hour. Comparing rows within blocks
cancels drift and the effect of the seed (Fisher, "The design of experiments", 1935; Montgomery, "Design and
analysis of experiments", chapter 4). Intervals use the residual of the whole design, with
(rows - 1)(blocks - 1) degrees of freedom, unless the pair's own variance is larger. A row with too large a
residual (an F test at 1 % with Bonferroni's correction; Cochran 1941) leaves the design. A single run has no
interval, even if the spread of other rows is known: its own may differ.
`tests/analysis/test_coverage.py` simulates how often intervals contain the true value.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from scalestudy.analysis.statistics import NOTHING, Contrast, Estimate, Scale, student

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Values = Mapping[Any, float]
"""Values of a row's runs, by block."""
K = TypeVar("K", bound=Hashable)
APART = 0.01
"""Level of the test that removes a row from a design."""
LEAST_ROWS = 3
"""Rows that a design keeps: of two rows that differ, neither is the outlier."""
ROUNDING = 1e-12
"""Deviations below this share of the largest value are rounding errors."""


class Variance(NamedTuple):
    """Variance of a single run, and its degrees of freedom."""

    value: float
    freedom: float


class Pooled(NamedTuple, Generic[K]):
    """Spread of the rows of a design.

    Attributes:
        within: Variance of a run about its row's mean, including the effect of blocks.
        residual: Variance after removing the effects of row and block; None if no rows share blocks.
    """

    rows: frozenset[K]
    within: Variance
    residual: Variance | None


def pooled(rows: Mapping[K, Values]) -> Pooled[K] | None:
    """Fit row + block; return None if no row has two runs. Rows with one run are left out.

    `rows` holds the values of each row's runs by block; finite, on the scale of the intervals.
    """
    rows = {key: values for key, values in rows.items() if len(values) > 1}
    if not rows:
        return None
    fit = _Fit(rows)
    while len(fit.rows) > LEAST_ROWS and fit.left_freedom:
        rest = _Fit({key: values for key, values in fit.rows.items() if key != fit.widest})
        if not _stands_apart(fit, rest):
            break
        fit = rest
    residual = Variance(fit.left / fit.left_freedom, fit.left_freedom) if fit.left_freedom else None
    if fit.squares == 0:
        within = Variance(0.0, fit.left_freedom or fit.freedom)
    else:
        freedom = _satterthwaite(fit.left / fit.squares, fit.left_freedom, fit.freedom)
        within = Variance(fit.squares / fit.freedom, freedom)
    return Pooled(frozenset(fit.rows), within, residual)


class _Fit(Generic[K]):
    """Row + block fitted to rows: squares and degrees of freedom, within rows and of the residual."""

    def __init__(self, rows: Mapping[K, Values]) -> None:
        import numpy as np

        self.rows = rows
        names = dict.fromkeys(name for values in rows.values() for name in values)
        places = {name: place for place, name in enumerate(names)}
        row = np.array([place for place, values in enumerate(rows.values()) for _ in values])
        block = np.array([places[name] for values in rows.values() for name in values])
        y = np.array([value for values in rows.values() for value in values.values()])
        floor = len(y) * (ROUNDING * float(np.abs(y).max())) ** 2
        deviations = y - _effects(row, y)
        residuals, self.left_freedom = _residual(row, block, deviations)
        self.freedom = len(y) - len(rows)
        self.squares, self.left = (
            squares if squares > floor else 0.0
            for squares in (float(deviations @ deviations), float(residuals @ residuals))
        )
        spreads = np.bincount(row, residuals**2) / (np.bincount(row) - 1)
        self.widest = list(rows)[int(spreads.argmax())]


def _stands_apart(fit: _Fit[K], rest: _Fit[K]) -> bool:
    """Whether the residual of the widest row is larger than the other rows explain."""
    from scipy.special import fdtrc

    freedom = fit.left_freedom - rest.left_freedom
    # If all other rows have equal runs (a metric over few samples), any difference would be significant.
    if freedom < 1 or rest.left_freedom < 1 or rest.left == 0:
        return False
    ratio = (fit.left - rest.left) / freedom / (rest.left / rest.left_freedom)
    return bool(fdtrc(freedom, rest.left_freedom, max(0.0, ratio)) < APART / len(fit.rows))


def _residual(row: "NDArray[np.intp]", block: "NDArray[np.intp]", y: "Array") -> tuple["Array", int]:
    """Return the residuals of row + block and their degrees of freedom, by alternating projections.

    One round is exact for a complete design; otherwise repeated projections converge (von Neumann; Halperin
    1962).
    """
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    squares, before = float(y @ y), math.inf
    while before - squares > ROUNDING * squares:
        y = y - _effects(block, y)
        y = y - _effects(row, y)
        before, squares = squares, float(y @ y)
    counts = int(row.max()) + 1, int(block.max()) + 1
    graph = coo_array((np.ones(len(y)), (row, counts[0] + block)), shape=(sum(counts),) * 2)
    parts = connected_components(graph, directed=False, return_labels=False)
    return y, len(y) - sum(counts) + int(parts)


def _effects(group: "NDArray[np.intp]", y: "Array") -> "Array":
    """Return the mean of each value's group, [values]."""
    import numpy as np

    means: Array = (np.bincount(group, y) / np.bincount(group))[group]
    return means


def _satterthwaite(share: float, left_freedom: int, freedom: int) -> float:
    """Degrees of freedom of a variance: `share` of it is residual, the rest comes from blocks.

    Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics 2 (1946).
    """
    of_blocks = freedom - left_freedom
    if not left_freedom or not of_blocks:
        return freedom
    return 1 / ((1 - share) ** 2 / of_blocks + share**2 / left_freedom)


def _variance(values: Sequence[float]) -> float:
    """Sample variance of at least two values."""
    if min(values) == max(values):  # the mean of equal values may be off by a rounding error
        return 0.0
    centre = fmean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def spread(values: Sequence[float], design: Pooled[Any] | None) -> Variance | None:
    """Variance of a run about its row's mean: the larger of design and row; None for a single run."""
    if len(values) < 2:
        return None
    of_row = Variance(_variance(values), len(values) - 1)
    return design.within._replace(value=max(design.within.value, of_row.value)) if design else of_row


def mean(values: Sequence[float], scale: Scale, design: Pooled[Any] | None = None) -> Estimate:
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
    ours: Values, theirs: Values, design: Pooled[Any] | None = None, their_design: Pooled[Any] | None = None
) -> Contrast:
    """Mean of one row minus the mean of another: within blocks if the rows share at least two, else unpaired.

    Args:
        ours: Values of the first row, on the scale of the interval.
        theirs: Values of the second row.
        design: Design of the first row; if None, its own variance is used.
        their_design: Design of the second row. If the designs differ, the degrees of freedom are those of the
            pairs or, unpaired, Welch's (Biometrika 34, 1947).
    """
    common = [block for block in ours if block in theirs]
    if len(common) > 1:
        changes = [ours[block] - theirs[block] for block in common]
        single = Variance(_variance(changes) / 2, len(changes) - 1)
        residual = design.residual if design and design is their_design else None
        if residual and residual.freedom >= single.freedom:
            single = residual._replace(value=max(residual.value, single.value))
        error = math.sqrt(2 * single.value / len(changes))
        return Contrast(fmean(changes), error, single.freedom, len(changes))
    change = fmean(ours.values()) - fmean(theirs.values())
    first, second = spread([*ours.values()], design), spread([*theirs.values()], their_design)
    if first is None or second is None:
        return Contrast(change)
    parts = first.value / len(ours), second.value / len(theirs)
    total = sum(parts)
    freedom = min(first.freedom, second.freedom)
    if total > 0 and (design is None or design is not their_design):
        shares = parts[0] / total, parts[1] / total
        freedom = 1 / (shares[0] ** 2 / first.freedom + shares[1] ** 2 / second.freedom)
    return Contrast(change, math.sqrt(total), freedom)
