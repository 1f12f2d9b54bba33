"""Fit a scaling model to training times: choose its terms, their sizes and their uncertainty.

See `scalestudy docs explanation/scaling-models`.

T(n) = fixed + updates(n) * t_step(n). With a batch per worker and fixed epochs, updates fall as 1/n, and each
takes compute + exchange(n). With a fixed global batch, updates are constant, and each takes compute/n +
serial + exchange(n). Terms of exchange are 0 on one worker: a constant; a ring (Patarasuk and Yuan, JPDC 69,
2009); log2 n, for trees and the slowest of n (Thakur, Rabenseifner and Gropp, 2005); n - 1; a constant from
the second node on. Terms that are sums of others are left out.

Coefficients are non-negative (Lawson and Hanson 1974), and runs are weighted by the geometric mean at their
number of workers. The model has the least corrected Akaike criterion (Hurvich and Tsai, Biometrika 76, 1989).
Intervals contain every time that non-negative terms can give without fitting worse than an F test at 5 %
allows: a profile likelihood (Bates and Watts 1988, section 6.1) over a cone (Rust and Burrus 1972). Lack of
fit means that the means lie further from the model than the scatter of runs explains (F test at 1 %; Draper
and Smith 1998, section 2.1) and by more than `SLIGHT`; for single runs, by more than `CLEAR`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from scalestudy.analysis.estimate import Estimate, student
from scalestudy.util import units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


Update = Literal["fixed", "growing"]
MINIMUM_COUNTS = 3
"""Different numbers of workers that a model needs: any two points lie on a line."""
MOST_TERMS = 3
FOR_CRITERION = 6
"""Number of runs from which the information criterion can compare models of different size."""
LEAST_FREEDOM = 3
"""Degrees of freedom below which there is no interval."""
LEVEL = 0.01
"""Level of the lack-of-fit test."""
SLIGHT, CLEAR = 0.01, 0.05
ROUNDING = 1e-7
"""Relative errors below this are rounding errors."""
DOUBLINGS = 21
"""Doublings of the smallest number of workers that are tried to find the shortest time."""


@dataclass(frozen=True)
class ScalingTerm:
    """One term: its name in files, the text after its coefficient, and its shape as a function of n [counts].

    Names are "fixed", "compute", "constant", "ring", "log", "linear" and "second node".
    """

    name: str
    text: str
    shape: "Callable[[Array], Array]"


def terms_of(
    update: Update | None, full_node: int | None = None
) -> tuple[ScalingTerm, ...]:
    """Terms that the times of a series (`scaling_model.Series`) may have; the first is in every model.

    `full_node` is the largest number of workers on one node if a term for the second node can be fitted; else
    None.
    """
    if update == "fixed":
        terms = _terms_of_fixed_updates()
    else:
        terms = _terms_of_fewer_updates()
    if full_node:
        terms.append(_second_node(full_node, fixed=update == "fixed"))
    return tuple(terms)


def _terms_of_fixed_updates() -> list[ScalingTerm]:
    """Terms of a training with as many updates on any number of workers: each update takes its exchange."""
    return [
        ScalingTerm("compute", "/n", lambda n: 1 / n),
        ScalingTerm("fixed", "", lambda n: n**0),
        # A power of n makes numbers of the truth values.
        ScalingTerm("constant", " for n ≥ 2", lambda n: (n >= 2) * n**0),
        ScalingTerm("log", " log₂(n)", lambda n: np.log2(n) * n**0),
        ScalingTerm("linear", " (n − 1)", lambda n: (n - 1) * n**0),
    ]


def _terms_of_fewer_updates() -> list[ScalingTerm]:
    """Terms of a training with 1/n of the updates of one worker, so that exchange is paid less often."""
    return [
        ScalingTerm("compute", "/n", lambda n: 1 / n),
        ScalingTerm("fixed", "", lambda n: n**0),
        ScalingTerm("constant", "/n for n ≥ 2", lambda n: (n >= 2) * n**-1),
        ScalingTerm("ring", " · 2(n − 1)/n²", lambda n: 2 * (n - 1) * n**-2),
        ScalingTerm("log", " log₂(n)/n", lambda n: np.log2(n) * n**-1),
    ]


def _second_node(full_node: int, *, fixed: bool) -> ScalingTerm:
    """What every update takes longer from the second node on."""
    where = f" for n > {full_node}"
    if fixed:
        return ScalingTerm("second node", where, lambda n: (n > full_node) * n**0)
    # Updates fall as 1/n, and with them how often it is paid.
    where = f"/n{where}"
    return ScalingTerm("second node", where, lambda n: (n > full_node) * n**-1)


@dataclass(frozen=True)
class ScalingFit:
    """A scaling model with its coefficients.

    Attributes:
        coefficients: Seconds, one for each of `terms`; 0 for terms that are not in the model.
        counts: Different numbers of workers it was fitted to, in order.
        residuals: Geometric mean at each number of workers over the model's time, minus 1.
        lack_of_fit: Whether the runs deviate from the model by more than their scatter.
        columns: Values of all terms, weighted, in at most one row more than terms: those of the runs, reduced
            by a QR decomposition, [rows, terms].
        values: Times, weighted and reduced likewise, [rows].
        variance: Variance of one run relative to its time.
        freedom: Degrees of freedom of `variance`; 0 if there is no interval.
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
        """Coefficients of the terms in the model, by name."""
        parts = {}
        for term, value in self._present:
            parts[term.name] = value
        return parts

    @property
    def written(self) -> str:
        """The model as text: `T(n) = 96.2 + 467/n s`."""
        # The part that does not shrink comes first, as in Amdahl's law.
        shrinking, parts = [], []
        for term, value in self._present:
            text = f"{units.three_digits(value)}{term.text}"
            if term.text:
                shrinking.append(text)
            else:
                parts.append(text)
        return f"T(n) = {' + '.join([*parts, *shrinking])} s"

    @property
    def _present(self) -> list[tuple[ScalingTerm, float]]:
        """The terms in the model with their coefficients, without those that are rounding errors."""
        small = ROUNDING * max(self.coefficients)
        present = []
        for term, value in zip(self.terms, self.coefficients, strict=True):
            if value > small:
                present.append((term, value))
        return present

    @property
    def worst(self) -> tuple[int, float]:
        """The number of workers with the largest residual, and that residual."""
        worst = max(self.residuals, key=lambda count: abs(self.residuals[count]))
        return worst, self.residuals[worst]

    @property
    def one_run(self) -> Estimate:
        """Factor about a mean, with the interval that contains one run; no interval with too few runs."""
        if not self.freedom:
            return Estimate(1.0)
        exponent = student(self.freedom) * math.sqrt(self.variance)
        # Larger exponents bound nothing and would overflow.
        factor = math.exp(min(exponent, 100.0))
        return Estimate(1.0, 1 / factor, factor)

    def seconds(self, workers: float) -> float:
        """T(n) in seconds."""
        shape = _columns(self.terms, [workers])[0]
        return float(shape @ np.asarray(self.coefficients))

    def mean(self, workers: float) -> Estimate:
        """T(n) with the 95 % interval of the mean over many runs; no interval if the runs do not bound it."""
        value = self.seconds(workers)
        if not self.freedom:
            return Estimate(value)
        shape = _columns(self.terms, [workers])[0]
        # Of all terms, not only of the chosen ones: the criterion may have left out a term that exists.
        coefficients, least = _least_squares(self.columns, self.values)
        best = float(shape @ coefficients)
        if best <= 0:
            return Estimate(value)
        # The squares that an F test with one degree of freedom allows: Student's quantile squared.
        variance = max(self.variance, ROUNDING**2)
        allowed = least + variance * student(self.freedom) ** 2
        low = self._end(shape, best, allowed, 0.8)
        high = self._end(shape, best, allowed, 1.25)
        # The chosen model may lie outside of what all terms together allow.
        if 0 < low < high < math.inf:
            return Estimate(value, min(value, low), max(value, high))
        return Estimate(value)

    def _end(
        self,
        shape: "Array",
        best: float,
        allowed: float,
        factor: float,
    ) -> float:
        """Least or largest value of `shape` [terms] times coefficients that the runs allow."""
        from scipy.optimize import brentq

        heavy = 1e4  # weight of one added row that fixes the predicted value

        def excess(value: float) -> float:
            columns = np.vstack((self.columns, heavy * shape / value))
            values = np.append(self.values, heavy)
            _, squares = _least_squares(columns, values)
            return squares - allowed

        # Steps away from the best value bracket the end, or show that there is none.
        end = best * factor
        while excess(end) < 0:
            if not 1e-9 < end / best < 1e9:
                # The runs allow any value on this side.
                if factor < 1:
                    return 0.0
                return math.inf
            end *= factor
        return float(brentq(excess, end, end / factor, xtol=1e-12 * best, rtol=1e-5))

    def run(self, workers: float) -> Estimate:
        """T(n) with the 95 % prediction interval of one run."""
        return self.mean(workers).times(self.one_run)

    def shortest(self) -> Estimate:
        """The shortest time over all numbers of workers, with an interval as in `mean`."""
        # Times may rise within what was measured, so that the search begins at the smallest number.
        least = math.inf
        lows, highs = [], []
        for doubling in range(DOUBLINGS):
            workers = self.counts[0] * 2**doubling
            mean = self.mean(workers)
            least = min(least, mean.value or math.inf)
            if mean.low is not None and mean.high is not None:
                lows.append(mean.low)
                highs.append(mean.high)
        # Without an interval at one of them, none can be given for the least of all.
        if len(lows) < DOUBLINGS:
            return Estimate(least)
        return Estimate(least, min(lows), min(highs))


def fit(
    terms: Sequence[ScalingTerm],
    counts: Sequence[int],
    seconds: Sequence[float],
) -> ScalingFit | None:
    """Fit a scaling model to runs, given the number of workers and the training time of each.

    Returns None with fewer than three different numbers of workers, or if a time is not a positive number.
    """
    n = np.asarray(counts, float)
    times = np.asarray(seconds, float)
    different, place = np.unique(n, return_inverse=True)
    if len(different) < MINIMUM_COUNTS:
        return None
    if not np.all(np.isfinite(times)):
        return None
    if np.any(times <= 0):
        return None
    runs = np.bincount(place)
    # Errors of times are relative: every run is divided by the geometric mean at its number of workers.
    logarithms = np.bincount(place, np.log(times))
    level = np.exp(logarithms / runs)
    of_run = level[place]
    columns = _columns(terms, n) / of_run[:, None]
    values = times / of_run
    coefficients = _choose(columns, values, len(different))
    predicted = _columns(terms, different) @ coefficients
    # The prediction may be 0 s.
    some = np.maximum(predicted, level * 1e-12)
    residuals = level / some - 1
    largest = float(np.max(np.abs(residuals)))
    means = np.bincount(place, values) / runs
    deviations = values - means[place]
    scatter = float(np.sum(deviations**2))
    if len(n) > len(different):
        off = columns @ coefficients - values
        squares = float(np.sum(off**2))
        missed, _ = _lack(squares, scatter, len(n), len(different), coefficients)
        lack_of_fit = missed < LEVEL and largest > SLIGHT
    else:
        # Single runs have no scatter to test against.
        lack_of_fit = largest > CLEAR
    # With all terms, so that the spread does not depend on which were chosen.
    free, least = _least_squares(columns, values)
    variance, freedom = _variance(least, scatter, len(n), len(different), free)
    # Intervals solve it hundreds of times. The triangular factor has the same sum of squares for any
    # coefficients, in a few rows instead of one for each run.
    together = np.column_stack((columns, values))
    _, reduced = np.linalg.qr(together)
    by_count = {}
    for count, residual in zip(different, residuals, strict=True):
        by_count[int(count)] = float(residual)
    return ScalingFit(
        terms=tuple(terms),
        coefficients=tuple(coefficients.tolist()),
        counts=tuple(by_count),
        residuals=by_count,
        lack_of_fit=lack_of_fit,
        columns=reduced[:, :-1],
        values=reduced[:, -1],
        variance=variance,
        freedom=freedom,
    )


def _choose(columns: "Array", values: "Array", counts: int) -> "Array":
    """Coefficients of the chosen model, 0 for terms that are not in it, [terms]."""
    runs, terms = columns.shape
    best = np.zeros(terms)
    least = math.inf
    # One number of workers more than terms, so that something is left to check the model with.
    sizes = range(1, min(MOST_TERMS, counts - 1) + 1)
    # The correction of the criterion divides by runs - size - 2, which a few runs make 0 or less.
    if runs < FOR_CRITERION:
        sizes = range(2, 3)
    for size in sizes:
        for others in combinations(range(1, terms), size - 1):
            chosen = [0, *others]
            if _is_collinear(columns[:, chosen]):
                continue
            coefficients, squares = _least_squares(columns[:, chosen], values)
            # Without the second summand, a perfect fit would have the logarithm of 0.
            variance = squares / runs + ROUNDING**2
            criterion = runs * math.log(variance)
            if runs >= FOR_CRITERION:
                # The variance is a parameter too. Hurvich and Tsai (1989) correct for few runs.
                parameters = size + 1
                criterion += 2 * parameters * runs / (runs - parameters - 1)
            # Of models that fit alike, the first has the fewest terms.
            if criterion < least - 1e-9:
                best, least = np.zeros(terms), criterion
                best[chosen] = coefficients
    return best


def _is_collinear(columns: "Array") -> bool:
    # Normalised, so that very long times do not make independent terms look collinear.
    lengths = np.linalg.norm(columns, axis=0)
    if not np.all(lengths):
        return True
    rank = np.linalg.matrix_rank(columns / lengths, tol=1e-9)
    return bool(rank < columns.shape[1])


def _lack(
    squares: float,
    scatter: float,
    runs: int,
    counts: int,
    coefficients: "Array",
) -> tuple[float, float]:
    """Return the P value of the lack-of-fit F test (1 if it cannot be computed) and the means' variance.

    `squares` are the squares about the model, `scatter` those about the mean at each number of workers.
    """
    from scipy.special import fdtrc

    # A coefficient at its bound of 0 takes no degree of freedom.
    freedom = counts - int(np.count_nonzero(coefficients))
    inside = runs - counts
    if freedom < 1 or inside < 1:
        return 1.0, 0.0
    between = max(0.0, squares - scatter) / freedom
    within = max(scatter / inside, ROUNDING**2)
    return float(fdtrc(freedom, inside, between / within)), between


def _variance(
    least: float,
    scatter: float,
    runs: int,
    counts: int,
    free: "Array",
) -> tuple[float, int]:
    """Return the variance of a run under all terms and its degrees of freedom; 0 if these are too few."""
    terms = int(np.count_nonzero(free))
    missed, between = _lack(least, scatter, runs, counts, free)
    if missed < 0.05:
        # No terms explain the means: their distance from the model is what a prediction may miss by.
        return between, counts - terms
    freedom = runs - terms
    if freedom < LEAST_FREEDOM:
        return 0.0, 0
    within = 0.0
    if runs > counts:
        within = scatter / (runs - counts)
    return max(least / freedom, within), freedom


def _least_squares(columns: "Array", values: "Array") -> tuple["Array", float]:
    """Return non-negative coefficients and the residual sum of squares."""
    from scipy.optimize import nnls

    # Normalised, so that the solver's tolerance does not drop a small term.
    size = np.linalg.norm(columns, axis=0)
    size[size == 0] = 1.0
    coefficients, rest = nnls(columns / size, values)
    return coefficients / size, float(rest) ** 2


def _columns(
    terms: Sequence[ScalingTerm], counts: "Sequence[float] | Array"
) -> "Array":
    """Values of the terms, [counts, terms]."""
    n = np.asarray(counts, float)
    return np.stack([term.shape(n) for term in terms], axis=1)
