"""One variance out of the rows of a study, where that is sound.

Few runs tell little about their own spread: Student's factor is 12.7 for the two of one row. Where rows
spread alike, their squares about their own means add up to one variance with as many degrees of freedom
as there are runs beyond one a row, as in an analysis of variance (Fisher, "Statistical methods for
research workers", 1925): 4 for four rows of two runs, and Student's factor is 2.8.

**What seeds share.** Under one seed all rows see the same split and initial weights, so their qualities
rise and fall together. `by_seed` fits row + seed (a randomised block design): what is left is the spread
of paired differences, with (rows - 1)(seeds - 1) degrees of freedom. The variance about the row's mean
then holds a part that few seeds know and a part that all runs know; its degrees of freedom are those of
Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2
(1946): near seeds - 1 where seeds decide, near one a run beyond the rows' means where they do not.

**When it is sound.** A row's squares are held against those of the others by an F test at the 1 % level:
Cochran's test of the largest variance ("The distribution of the largest of a set of estimated variances",
Annals of Eugenics 11, 1941; for unequal counts 't Lam, Analytica Chimica Acta 659, 2010), with Bonferroni's
correction for the number of rows. The row that spreads furthest is tested first, and all are taken out down
to the last one that the test finds (Rosner, "Percentage points for a generalized ESD many-outlier
procedure", Technometrics 25, 1983), so that two wild rows do not hide each other. If half of the rows or
more go, or fewer than three are left, nothing is pooled.

So few runs hide smaller differences from any test. Therefore a row whose own variance is the larger one
keeps it, with the pool's degrees of freedom, and a row that spreads less than the others gets an interval
that is too wide. What this leaves: a row that spreads some two to ten times as far as its like, but not so
far that the test sees it, has intervals that hold less often than they claim.
`tests/analysis/test_coverage.py` says how much less.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from scalestudy.analysis.runs import Seed
from scalestudy.analysis.statistics import Spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

K = TypeVar("K", bound=Hashable)

MINIMUM_ROWS = 3
"""Of two rows that differ, none is the odd one."""
LEVEL = 0.01
"""Level of the test that takes a row out."""


@dataclass(frozen=True)
class Pool(Generic[K]):
    """The rows that share a spread; none where that was not sound."""

    rows: tuple[K, ...] = ()
    apart: tuple[K, ...] = ()
    """Rows that were taken out: they spread further than the others, and keep their own spread."""
    spread: Spread | None = None
    """Of a run about its row's mean."""
    residual: Spread | None = None
    """Of a run once its seed's share is taken away; the same as `spread` unless pooled by seed."""


@dataclass(frozen=True)
class _Squares:
    """Sums that the fit of row + seed needs, one entry a row, so that rows are left out by leaving it out."""

    squares: "Array"
    """About the row's own mean, [rows]."""
    freedom: "Array"
    """Runs less one, [rows]."""
    shifts: "Array"
    """Sum of the deviations under each seed, [rows, seeds]; no seeds unless pooled by seed."""
    overlap: "Array"
    """The row's part of the seeds' normal equations, [rows, seeds, seeds]."""
    floor: float = 0.0
    """Squares below this are rounding."""

    def sums(self, use: "Array") -> tuple["Array", "Array"]:
        """Residual squares and degrees of freedom of the fit to the rows that `use` [..., rows] picks."""
        import numpy as np

        whole, freedom = use @ self.squares, use @ self.freedom
        squares = whole
        if self.shifts.shape[1]:
            values, vectors = np.linalg.eigh(np.tensordot(use, self.overlap, axes=1))
            turned = np.einsum("...ji,...j->...i", vectors, use @ self.shifts)
            # Only contrasts of seeds that share rows can be told from the rows' means.
            real = values > 1e-9 * max(1.0, float(values.max()))
            squares = squares - np.sum(np.where(real, turned**2 / np.where(real, values, 1.0), 0.0), axis=-1)
            freedom = freedom - real.sum(axis=-1)
        rounding = self.floor + 1e-12 * whole  # what the subtraction leaves of equal numbers
        return np.where(squares > rounding, squares, 0.0), freedom

    def p_values(self, kept: Sequence[int]) -> "Array":
        """How likely so much larger squares than the others' are by chance, for each kept row."""
        import numpy as np
        from scipy.special import fdtrc

        everyone = np.zeros(len(self.squares))
        everyone[list(kept)] = 1
        without = np.repeat(everyone[None], len(kept), axis=0)
        without[np.arange(len(kept)), list(kept)] = 0
        whole, freedom = self.sums(everyone)
        rest, rest_freedom = self.sums(without)
        extra, extra_freedom = whole - rest, freedom - rest_freedom
        # Beside rows whose runs are all equal (a metric counted in few samples, or near its bound) F would
        # be infinite for any row that differs at all, and say nothing.
        testable = (extra_freedom > 0) & (rest_freedom > 0) & (rest > 0)
        numerator = extra / np.maximum(extra_freedom, 1)
        f = numerator * np.maximum(rest_freedom, 1) / np.where(testable, rest, 1.0)
        found = fdtrc(np.maximum(extra_freedom, 1), np.maximum(rest_freedom, 1), np.maximum(f, 0.0))
        return np.where(testable, found, 1.0)


def pool(rows: Mapping[K, Mapping[Seed, float]], by_seed: bool) -> Pool[K]:
    """Pool the rows' spreads where that is sound.

    Args:
        rows: For each row its runs' values by seed, finite and on the scale of the intervals. Rows of one
            run tell nothing about spread and are left out.
        by_seed: Whether runs of one seed share something in all rows.
    """
    import numpy as np

    keys = [key for key, values in rows.items() if len(values) > 1]
    if len(keys) < MINIMUM_ROWS:
        return Pool()
    squares = _squares([rows[key] for key in keys], by_seed)
    out = _wild(squares)
    kept = [index for index in range(len(keys)) if index not in out]
    if len(kept) < MINIMUM_ROWS or 2 * len(out) >= len(keys):
        return Pool()
    use = np.zeros(len(keys))
    use[kept] = 1
    spread, residual = _spreads(squares, use, len(kept))
    if residual is None:
        return Pool()
    return Pool(
        rows=tuple(keys[index] for index in kept),
        apart=tuple(keys[index] for index in sorted(out)),
        spread=spread,
        residual=residual,
    )


def _wild(squares: _Squares) -> set[int]:
    """Rows whose variance the others' does not explain (generalised ESD)."""
    remaining = list(range(len(squares.squares)))
    order: list[int] = []
    found = 0
    while len(remaining) > 2:
        likely = squares.p_values(remaining)
        worst = int(likely.argmin())
        if likely[worst] < LEVEL / len(remaining):
            found = len(order) + 1
        order.append(remaining.pop(worst))
    return set(order[:found])


def _spreads(squares: _Squares, use: "Array", rows: int) -> tuple[Spread, Spread | None]:
    """Variance about the rows' means, and what is left of it beside the seeds; None if nothing is left."""
    within, freedom = float(use @ squares.squares), float(use @ squares.freedom)
    left, left_freedom = (float(value) for value in squares.sums(use))
    total = within / freedom
    if left_freedom == freedom:
        spread = Spread(total, freedom, rows)
        return spread, spread
    if left_freedom < 1:
        return Spread(total, freedom, rows), None
    residual = Spread(left / left_freedom, left_freedom, rows)
    if within <= squares.floor:
        return Spread(total, left_freedom, rows), residual
    share = left / within  # of the variance, in what seeds do not share
    by_seeds = freedom - left_freedom
    satterthwaite = 1 / ((1 - share) ** 2 / by_seeds + share**2 / left_freedom)
    return Spread(total, satterthwaite, rows), residual


def _squares(rows: Sequence[Mapping[Seed, float]], by_seed: bool) -> _Squares:
    import numpy as np

    seeds = sorted({seed for values in rows for seed in values}, key=str) if by_seed else []
    place = {seed: index for index, seed in enumerate(seeds)}
    shifts = np.zeros((len(rows), len(seeds)))
    overlap = np.zeros((len(rows), len(seeds), len(seeds)))
    squares, freedom = np.zeros(len(rows)), np.zeros(len(rows))
    for index, values in enumerate(rows):
        numbers = np.array(list(values.values()))
        deviations = numbers - numbers.mean()
        squares[index], freedom[index] = deviations @ deviations, len(values) - 1
        if by_seed:
            at = [place[seed] for seed in values]
            shifts[index, at] = deviations
            overlap[np.ix_([index], at, at)] = np.eye(len(at)) - 1 / len(at)
    largest = max(abs(value) for values in rows for value in values.values())
    floor = (1e-12 * largest) ** 2 * sum(len(values) for values in rows)
    return _Squares(squares, freedom, shifts, overlap, floor)
