"""Means and differences of rows whose runs come in randomised blocks: row + block + error.

Runs of one seed (split, initial weights, hour) are a block, so rows are compared within blocks: drift and
seeds cancel (Fisher, "The design of experiments", 1935; Montgomery, "Design and analysis of experiments",
chapter 4). The residual of the whole design counts, with (rows - 1)(blocks - 1) degrees of freedom, unless
the pair's own variance is larger. A row whose residual the others' do not explain (an F test at 1 %, by
Bonferroni; Cochran 1941) leaves the design. One run gives no interval, even where the spread of others is
known: nothing shows that its own is the same. `tests/analysis/test_coverage.py` simulates how often
intervals hold.
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
"""Values of a row's runs by block."""
K = TypeVar("K", bound=Hashable)
APART = 0.01
"""Level of the test that takes a row out of a design."""
LEAST_ROWS = 3
"""Rows that a design keeps: of two that differ, none is the odd one."""
ROUNDING = 1e-12
"""Share of the largest value below which a deviation is rounding."""


class Variance(NamedTuple):
    """Variance of a single run, and its degrees of freedom."""

    value: float
    freedom: float


class Pooled(NamedTuple, Generic[K]):
    """Spread of the rows of a design.

    Of a run about its row's mean (`within`, to which blocks add), and once the effects of row and block are
    taken away (`residual`; None where no rows share blocks).
    """

    rows: frozenset[K]
    within: Variance
    residual: Variance | None


def pooled(rows: Mapping[K, Values]) -> Pooled[K] | None:
    """Fit row + block; None without a row of two runs. Rows of one run say nothing about spread.

    Args:
        rows: For each row its runs' values by block, finite and on the scale of the intervals.
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
    """Row + block fitted to some rows: squares and degrees of freedom within rows, and beside blocks."""

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
    """Whether the residual of the widest row is more than that of the others explains."""
    from scipy.special import fdtrc

    freedom = fit.left_freedom - rest.left_freedom
    # Beside rows whose runs are all equal (a metric counted in few samples) any difference would stand apart.
    if freedom < 1 or rest.left_freedom < 1 or rest.left == 0:
        return False
    ratio = (fit.left - rest.left) / freedom / (rest.left / rest.left_freedom)
    return bool(fdtrc(freedom, rest.left_freedom, max(0.0, ratio)) < APART / len(fit.rows))


def _residual(row: "NDArray[np.intp]", block: "NDArray[np.intp]", y: "Array") -> tuple["Array", int]:
    """What row + block leave of values, and its degrees of freedom, by alternating projections.

    Exact after one round for a complete design; the products of two projections converge to their common one
    (von Neumann; Halperin 1962).
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
    """Mean of each value's group, [values]."""
    import numpy as np

    means: Array = (np.bincount(group, y) / np.bincount(group))[group]
    return means


def _satterthwaite(share: float, left_freedom: int, freedom: int) -> float:
    """Degrees of freedom of a variance of which `share` is residual and the rest is of blocks.

    Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics 2 (1946).
    """
    of_blocks = freedom - left_freedom
    if not left_freedom or not of_blocks:
        return freedom
    return 1 / ((1 - share) ** 2 / of_blocks + share**2 / left_freedom)


def _variance(values: Sequence[float]) -> float:
    """Sample variance of two values or more."""
    if min(values) == max(values):  # whose mean may be off by a rounding
        return 0.0
    centre = fmean(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def spread(values: Sequence[float], design: Pooled[Any] | None) -> Variance | None:
    """Variance of a run about its row's mean, by the design or its own if larger; None of a single run."""
    if len(values) < 2:
        return None
    of_row = Variance(_variance(values), len(values) - 1)
    return design.within._replace(value=max(design.within.value, of_row.value)) if design else of_row


def mean(values: Sequence[float], scale: Scale, design: Pooled[Any] | None = None) -> Estimate:
    """Mean of runs with Student's interval: geometric on logarithms, else arithmetic.

    Values that are not finite (a diverged run) leave nothing to average. Values that the scale does not hold
    (a throughput of 0) have an arithmetic mean without an interval.
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
    """Mean of one row less that of another: within blocks where they share two or more, else unpaired.

    Args:
        ours: Values of the first row, on the scale of the interval.
        theirs: Values of the second.
        design: The design that the first row belongs to; its own variance counts where there is none.
        their_design: That of the second. Unless both rows are of one design, the degrees of freedom are those
            of their pairs, or of Welch (Biometrika 34, 1947).
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
