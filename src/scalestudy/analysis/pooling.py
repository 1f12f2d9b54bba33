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
from functools import cached_property
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

    @cached_property
    def together(self) -> frozenset[K]:
        """The same rows, to look one up among many."""
        return frozenset(self.rows)


@dataclass(frozen=True)
class _Squares:
    """Sums that the fit of row + seed needs, one entry a row, so that rows are left out by leaving it out."""

    squares: "Array"
    """About the row's own mean, [rows]."""
    freedom: "Array"
    """Runs less one, [rows]."""
    shifts: "Array"
    """Sum of the deviations under each seed, [rows, seeds]; no seeds unless pooled by seed."""
    pattern: "NDArray[np.intp]"
    """Which seeds the row has: the place of that set in `overlaps`, [rows]."""
    overlaps: "Array"
    """Part of a row with those seeds in the seeds' normal equations, [patterns, seeds, seeds]."""
    floor: float = 0.0
    """Squares below this are rounding."""

    def sums(self, use: "Array") -> tuple[float, float]:
        """Residual squares and degrees of freedom of the fit to the rows that `use` [rows] picks."""
        import numpy as np

        whole, freedom = float(use @ self.squares), float(use @ self.freedom)
        normal = np.tensordot(self._counts(use), self.overlaps, axes=1)
        squares, freedoms = self._fitted(
            normal, (use @ self.shifts)[None], np.array([whole]), np.array([freedom])
        )
        return float(squares[0]), float(freedoms[0])

    def sums_without(self, kept: Sequence[int]) -> tuple["Array", "Array"]:
        """The same of the kept rows but one, for each of them.

        Rows with the same seeds leave the same equations behind, which are solved once.
        """
        import numpy as np

        rows = np.asarray(kept)
        use = np.zeros(len(self.squares))
        use[rows] = 1
        whole, freedom = use @ self.squares - self.squares[rows], use @ self.freedom - self.freedom[rows]
        shifts = use @ self.shifts - self.shifts[rows]
        normal = np.tensordot(self._counts(use), self.overlaps, axes=1)
        squares, freedoms = np.zeros(len(rows)), np.zeros(len(rows))
        for pattern in np.unique(self.pattern[rows]):
            of_it = self.pattern[rows] == pattern
            squares[of_it], freedoms[of_it] = self._fitted(
                normal - self.overlaps[pattern], shifts[of_it], whole[of_it], freedom[of_it]
            )
        return squares, freedoms

    def _counts(self, use: "Array") -> "Array":
        import numpy as np

        found: Array = np.bincount(self.pattern, weights=use, minlength=len(self.overlaps)).astype(np.float64)
        return found

    def _fitted(
        self, normal: "Array", shifts: "Array", whole: "Array", freedom: "Array"
    ) -> tuple["Array", "Array"]:
        """What is left of `whole` [n] beside the seeds, whose shifts are [n, seeds], by these equations."""
        import numpy as np

        squares = whole
        if shifts.shape[1]:
            values, vectors = np.linalg.eigh(normal)
            # Only contrasts of seeds that share rows can be told from the rows' means.
            real = values > 1e-9 * max(1.0, float(values.max()))
            squares = squares - np.sum((shifts @ vectors[:, real]) ** 2 / values[real], axis=1)
            freedom = freedom - real.sum()
        rounding = self.floor + 1e-12 * whole  # what the subtraction leaves of equal numbers
        return np.where(squares > rounding, squares, 0.0), freedom

    def worst(self, kept: Sequence[int]) -> tuple[int, float]:
        """The kept row that spreads furthest beside the others (its place among them), and by what chance."""
        import numpy as np

        everyone = np.zeros(len(self.squares))
        everyone[list(kept)] = 1
        whole, freedom = self.sums(everyone)
        rest, rest_freedom = self.sums_without(kept)
        return _least_likely(whole - rest, freedom - rest_freedom, rest, rest_freedom)


def _least_likely(
    extra: "Array", extra_freedom: "Array", rest: "Array", rest_freedom: "Array"
) -> tuple[int, float]:
    """Of rows with larger squares than the rest's the one that chance explains least, and how likely."""
    import numpy as np
    from scipy.special import fdtrc

    # Beside rows whose runs are all equal (a metric counted in few samples, or near its bound) F would
    # be infinite for any row that differs at all, and say nothing.
    testable = (extra_freedom > 0) & (rest_freedom > 0) & (rest > 0)
    ours, theirs = np.maximum(extra_freedom, 1), np.maximum(rest_freedom, 1)
    f = np.maximum(extra / ours * theirs / np.where(testable, rest, 1.0), 0.0)
    if testable.all() and ours.min() == ours.max() and theirs.min() == theirs.max():
        worst = int(f.argmax())  # of rows with as many runs
        return worst, float(fdtrc(ours[worst], theirs[worst], f[worst]))
    likely = np.where(testable, fdtrc(ours, theirs, f), 1.0)
    worst = int(likely.argmin())
    return worst, float(likely[worst])


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
    if not squares.shifts.shape[1] and len(set(squares.freedom)) == 1:
        return _wild_by_size(squares)
    remaining = list(range(len(squares.squares)))
    order: list[int] = []
    found = 0
    while len(remaining) > 2:
        worst, likely = squares.worst(remaining)
        if likely < LEVEL / len(remaining):
            found = len(order) + 1
        order.append(remaining.pop(worst))
    return set(order[:found])


def _wild_by_size(squares: _Squares) -> set[int]:
    """The same of rows with as many runs and nothing shared, where the largest squares always go next."""
    import numpy as np
    from scipy.special import fdtrc

    order = np.argsort(-squares.squares, kind="stable")
    sizes = squares.squares[order]
    left = np.arange(len(sizes), 2, -1)  # rows that each test is about
    rest = np.cumsum(sizes[::-1])[::-1][1 : len(left) + 1]
    runs = squares.freedom[0]
    f = sizes[: len(left)] / runs * (left - 1) * runs / np.where(rest > squares.floor, rest, 1.0)
    likely = np.where(rest > squares.floor, fdtrc(runs, (left - 1) * runs, f), 1.0)
    beyond = np.flatnonzero(likely < LEVEL / left)
    return {int(row) for row in order[: beyond[-1] + 1]} if len(beyond) else set()


def _spreads(squares: _Squares, use: "Array", rows: int) -> tuple[Spread, Spread | None]:
    """Variance about the rows' means, and what is left of it beside the seeds; None if nothing is left."""
    within, freedom = float(use @ squares.squares), float(use @ squares.freedom)
    left, left_freedom = squares.sums(use)
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
    patterns: dict[tuple[int, ...], int] = {}
    pattern = np.zeros(len(rows), np.intp)
    squares, freedom = np.zeros(len(rows)), np.zeros(len(rows))
    for index, values in enumerate(rows):
        numbers = np.array(list(values.values()))
        deviations = numbers - numbers.mean()
        squares[index], freedom[index] = deviations @ deviations, len(values) - 1
        if by_seed:
            at = [place[seed] for seed in values]
            shifts[index, at] = deviations
            pattern[index] = patterns.setdefault(tuple(sorted(at)), len(patterns))
    overlaps = np.zeros((max(len(patterns), 1), len(seeds), len(seeds)))
    for found, index in patterns.items():
        overlaps[np.ix_([index], found, found)] = np.eye(len(found)) - 1 / len(found)
    largest = max(abs(value) for values in rows for value in values.values())
    floor = (1e-12 * largest) ** 2 * sum(len(values) for values in rows)
    return _Squares(squares, freedom, shifts, pattern, overlaps, floor)
