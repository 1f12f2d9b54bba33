"""A scaling model fitted to training times: which terms, how large, how sure.

See docs/explanation/scaling-models.md.

T(n) = fixed + updates(n) * t_step(n): with a batch per worker and fixed epochs the updates fall as 1/n, and
an update takes compute + exchange(n); with one global batch they stay, and an update takes
compute/n + serial + exchange(n). Terms of exchange are 0 on one worker: one that does not grow; a ring's
(Patarasuk and Yuan, JPDC 69, 2009); log2 n, of trees and the slowest of n (Thakur, Rabenseifner and Gropp,
2005); n - 1; one from the second node on. Left out is what others add up to.

Terms are non-negative (Lawson and Hanson 1974), runs weighted by the geometric mean of their count, the model
that of the least corrected Akaike criterion (Hurvich and Tsai, Biometrika 76, 1989). Ends of intervals are
the times furthest apart that any non-negative terms give without fitting worse than an F test at 5 %
allows: a profile likelihood (Bates and Watts 1988, section 6.1) over a cone (Rust and Burrus 1972). Lack of
fit: means lie further from the model than runs scatter (F test at 1 %; Draper and Smith 1998, section 2.1),
by more than `SLIGHT`; of single runs, than `CLEAR`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from scalestudy.analysis.statistics import Estimate, student

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Work = Literal["strong", "weak"]
Update = Literal["fixed", "growing"]
MINIMUM_COUNTS = 3
"""Different counts that a model takes: any two points have a line."""
MOST_TERMS = 3
FOR_CRITERION = 6
"""Runs from which the information criterion can hold a pair of terms against others."""
LEAST_FREEDOM = 3
"""Runs beyond terms below which there is no interval."""
LEVEL = 0.01
"""Level of the test of lack of fit."""
SLIGHT, CLEAR = 0.01, 0.05
ROUNDING = 1e-7
"""Relative errors below this are rounding."""
DOUBLINGS = 21
"""From the smallest count on: numbers of workers that stand for all."""


@dataclass(frozen=True)
class ScalingTerm:
    """One term: its name in files, how it is written after its number, and its shape in n, of [counts].

    Names are "fixed", "compute", "constant", "ring", "log", "linear" and "second node".
    """

    name: str
    text: str
    shape: "Callable[[Array], Array]"


def terms_of(work: Work, update: Update | None, full_node: int | None = None) -> tuple[ScalingTerm, ...]:
    """Terms that the times of a series (`series.Series`) may have, the one that all have first.

    `full_node` are the most workers of one node, where a term for the second node can be told; else None.
    """
    fixed = update == "fixed"
    # A training has n**power times the updates of one worker's.
    power = (1 if fixed else 0) if work == "weak" else (0 if fixed else -1)
    many = {-1: "/n", 0: "", 1: " n"}[power]
    over = {-1: "/n²", 0: "/n", 1: ""}[power]
    ring = ScalingTerm("ring", f" · 2(n − 1){over}", lambda n: 2 * (n - 1) * n ** (power - 1))
    linear = ScalingTerm("linear", f" (n − 1){many}", lambda n: (n - 1) * n**power)
    if work == "weak":
        terms = [ScalingTerm("compute", "", lambda n: n**0)]
    else:
        terms = [
            ScalingTerm("compute", "/n", lambda n: 1 / n),
            ScalingTerm("fixed", "", lambda n: n**0),
        ]
    terms.append(ScalingTerm("constant", f"{many} for n ≥ 2", lambda n: (n >= 2) * n**power))
    terms += [ring] if work == "weak" or not fixed else []
    terms.append(ScalingTerm("log", f" log₂(n){many}", lambda n: np.log2(n) * n**power))
    terms += [linear] if work == "weak" or fixed else []
    if full_node:
        second = f"{many} for n > {full_node}"
        terms.append(ScalingTerm("second node", second, lambda n: (n > full_node) * n**power))
    return tuple(terms)


@dataclass(frozen=True)
class ScalingFit:
    """A scaling model with its numbers.

    Attributes:
        coefficients: Seconds, one for each of `terms`; 0 for those that are not in the model.
        counts: Different numbers of workers it was fitted to, in order.
        residuals: Geometric mean of each count over the model's time, less 1.
        lack_of_fit: Whether the model misses something that the runs show.
        columns: Of all terms, weighted, [runs, terms].
        values: Times, weighted, [runs].
        variance: Of one run, as a share of its time.
        freedom: Degrees of freedom of that; 0 for no interval.
    """

    terms: tuple[ScalingTerm, ...]
    coefficients: tuple[float, ...]
    counts: tuple[int, ...]
    residuals: dict[int, float]
    lack_of_fit: bool
    columns: "Array" = field(repr=False, compare=False)
    values: "Array" = field(repr=False, compare=False)
    variance: float
    freedom: int

    @property
    def parts(self) -> dict[str, float]:
        """Coefficients by name of their term, of those in the model."""
        return {term.name: value for term, value in self._present}

    @property
    def written(self) -> str:
        """`T(n) = 96.2 + 467/n s`."""
        inside = sorted(self._present, key=lambda pair: pair[0].text != "")
        return f"T(n) = {' + '.join(f'{_three_digits(value)}{term.text}' for term, value in inside)} s"

    @property
    def _present(self) -> list[tuple[ScalingTerm, float]]:
        small = ROUNDING * max(self.coefficients)
        return [pair for pair in zip(self.terms, self.coefficients, strict=True) if pair[1] > small]

    @property
    def worst(self) -> tuple[int, float]:
        """The count that lies furthest from the model, and its residual."""
        return max(self.residuals.items(), key=lambda pair: abs(pair[1]))

    @property
    def one_run(self) -> Estimate:
        """Factor about a mean, with the interval that holds one run; none where there are too few runs."""
        if not self.freedom:
            return Estimate(1.0)
        exponent = student(self.freedom) * math.sqrt(self.variance)
        factor = math.exp(min(exponent, 100.0))  # beyond that the runs bound nothing, and exp() overflows
        return Estimate(1.0, 1 / factor, factor)

    def seconds(self, workers: float) -> float:
        """T(n)."""
        return float(_columns(self.terms, [workers])[0] @ np.asarray(self.coefficients))

    def mean(self, workers: float) -> Estimate:
        """T(n) with the 95 % interval of the mean over many runs; none where the runs do not bound it."""
        value = self.seconds(workers)
        if not self.freedom:
            return Estimate(value)
        shape = _columns(self.terms, [workers])[0]
        coefficients, least = _least_squares(self.columns, self.values)
        best = float(shape @ coefficients)
        if best <= 0:
            return Estimate(value)
        allowed = least + max(self.variance, ROUNDING**2) * student(self.freedom) ** 2
        low, high = (self._end(shape, best, allowed, factor) for factor in (0.8, 1.25))
        if 0 < low < high < math.inf:
            return Estimate(value, min(value, low), max(value, high))
        return Estimate(value)

    def _end(self, shape: "Array", best: float, allowed: float, factor: float) -> float:
        """Least or largest value of `shape` [terms] times coefficients that the runs allow."""
        from scipy.optimize import brentq

        heavy = 1e4  # one row that holds the value where it is asked to be

        def excess(value: float) -> float:
            columns = np.vstack((self.columns, heavy * shape / value))
            return _least_squares(columns, np.append(self.values, heavy))[1] - allowed

        end = best * factor
        while excess(end) < 0:
            if not 1e-9 < end / best < 1e9:
                return 0.0 if factor < 1 else math.inf
            end *= factor
        return float(brentq(excess, end, end / factor, xtol=1e-12 * best, rtol=1e-5))

    def run(self, workers: float) -> Estimate:
        """T(n) with the 95 % prediction interval of one run."""
        return self.mean(workers).times(self.one_run)

    def shortest(self) -> Estimate:
        """The shortest time that any number of workers takes, as by `mean`."""
        means = [self.mean(self.counts[0] * 2**doubling) for doubling in range(DOUBLINGS)]
        ends = [(mean.low, mean.high) for mean in means if mean.low is not None and mean.high is not None]
        value = min(mean.value or math.inf for mean in means)
        if len(ends) < len(means):
            return Estimate(value)
        return Estimate(value, min(low for low, _ in ends), min(high for _, high in ends))


def fit(terms: Sequence[ScalingTerm], counts: Sequence[int], seconds: Sequence[float]) -> ScalingFit | None:
    """Fit a scaling model to runs: one number of workers and one training time each.

    Returns None below three different counts, and for times that are not positive numbers.
    """
    n, times = np.asarray(counts, float), np.asarray(seconds, float)
    different, place = np.unique(n, return_inverse=True)
    if len(different) < MINIMUM_COUNTS or not np.all(np.isfinite(times)) or np.any(times <= 0):
        return None
    runs = np.bincount(place)
    level = np.exp(np.bincount(place, np.log(times)) / runs)
    columns, values = _columns(terms, n) / level[place][:, None], times / level[place]
    coefficients = _choose(columns, values, len(different))
    predicted = _columns(terms, different) @ coefficients
    residuals = level / np.maximum(predicted, level * 1e-12) - 1  # it may predict 0 s
    scatter = float(np.sum((values - (np.bincount(place, values) / runs)[place]) ** 2))
    free, least = _least_squares(columns, values)
    squares = float(np.sum((columns @ coefficients - values) ** 2))
    missed, _ = _lack(squares, scatter, len(n), len(different), coefficients)
    largest = float(np.max(np.abs(residuals)))
    variance, freedom = _variance(least, scatter, len(n), len(different), free)
    return ScalingFit(
        terms=tuple(terms), coefficients=tuple(float(value) for value in coefficients),
        counts=tuple(int(count) for count in different),
        residuals={int(count): float(off) for count, off in zip(different, residuals, strict=True)},
        lack_of_fit=missed < LEVEL and largest > SLIGHT if len(n) > len(different) else largest > CLEAR,
        columns=columns, values=values, variance=variance, freedom=freedom,
    )  # fmt: skip


def _choose(columns: "Array", values: "Array", counts: int) -> "Array":
    """Coefficients of the chosen model, 0 for terms that are not in it, [terms]."""
    runs, terms = columns.shape
    best, least = np.zeros(terms), math.inf
    sizes = (2,) if runs < FOR_CRITERION else range(1, min(MOST_TERMS, counts - 1) + 1)
    for size in sizes:
        for others in combinations(range(1, terms), size - 1):
            chosen = [0, *others]
            # Of one size, so that times of years are not taken for terms that are alike.
            lengths = np.linalg.norm(columns[:, chosen], axis=0)
            if not np.all(lengths) or np.linalg.matrix_rank(columns[:, chosen] / lengths, tol=1e-9) < size:
                continue
            coefficients, squares = _least_squares(columns[:, chosen], values)
            criterion = runs * math.log(squares / runs + ROUNDING**2)
            if runs >= FOR_CRITERION:
                # The variance is a parameter too.
                criterion += 2 * (size + 1) * runs / (runs - size - 2)
            if criterion < least - 1e-9:
                best, least = np.zeros(terms), criterion
                best[chosen] = coefficients
    return best


def _lack(
    squares: float, scatter: float, runs: int, counts: int, coefficients: "Array"
) -> tuple[float, float]:
    """P value of the F test of lack of fit, 1 where nothing can be tested; and the means' variance.

    `squares` are about the model, `scatter` about the counts' own means.
    """
    from scipy.special import fdtrc

    freedom, inside = counts - int(np.count_nonzero(coefficients)), runs - counts
    if freedom < 1 or inside < 1:
        return 1.0, 0.0
    between = max(0.0, squares - scatter) / freedom
    return float(fdtrc(freedom, inside, between / max(scatter / inside, ROUNDING**2))), between


def _variance(least: float, scatter: float, runs: int, counts: int, free: "Array") -> tuple[float, int]:
    """Variance of a run under all terms, and its degrees of freedom; 0 where these are too few."""
    terms = int(np.count_nonzero(free))
    missed, between = _lack(least, scatter, runs, counts, free)
    if missed < 0.05:
        return between, counts - terms
    freedom = runs - terms
    if freedom < LEAST_FREEDOM:
        return 0.0, 0
    return max(least / freedom, scatter / (runs - counts) if runs > counts else 0.0), freedom


def _least_squares(columns: "Array", values: "Array") -> tuple["Array", float]:
    """Non-negative coefficients, and the sum of squares that is left."""
    from scipy.optimize import nnls

    # Terms of one size, so that no tolerance takes a small one for none.
    size = np.linalg.norm(columns, axis=0)
    size[size == 0] = 1.0
    coefficients, rest = nnls(columns / size, values)
    return coefficients / size, float(rest) ** 2


def _columns(terms: Sequence[ScalingTerm], counts: "Sequence[float] | Array") -> "Array":
    """Shapes of the terms, [counts, terms]."""
    n = np.asarray(counts, float)
    return np.stack([term.shape(n) for term in terms], axis=1)


def _three_digits(value: float) -> str:
    """`0.0123`, `4.57`, `7,540`: never in exponents above that."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
