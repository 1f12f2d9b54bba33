"""A law fitted to training times, and what it says of other numbers of workers.

Times spread by factors (`measures`), so errors count by their share of the time: every run is weighted by
the geometric mean of its count. Terms are held non-negative (Lawson and Hanson, "Solving least squares
problems", 1974), since none of them can give time back.

Intervals are the delta method's on logarithms with Student's t (Bates and Watts, "Nonlinear regression
analysis", 1988, section 2.3): of a time yet to be measured, a run's own scatter included. All terms of the
law count there, those that came out as zero too, which makes intervals rather too wide than too narrow. Where
the counts' means lie further from the law than their runs scatter (the F test of lack of fit at 5 %; Draper
and Smith, "Applied regression analysis", 1998, section 2.1), the distance of means from the law is what
counts, with as many degrees of freedom as there are counts beyond terms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scalestudy.analysis.scales import exponential
from scalestudy.analysis.scaling.law import Law
from scalestudy.analysis.statistics import Estimate, student

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_FREEDOM = 2
"""Degrees of freedom below which there is no interval."""
LEVEL = 0.05
"""Level of the test of lack of fit."""


@dataclass(frozen=True)
class Fit:
    """A law with its numbers.

    Attributes:
        law: The law.
        coefficients: One a term, none negative; seconds, or of a reciprocal law per second.
        counts: Different numbers of workers it was fitted to, in order.
        runs: Number of runs.
        spread: Standard deviation of a run about the law, as a share of its time; None where no run is left.
        freedom: Degrees of freedom of that.
        lacks: Whether the counts' means lie further from the law than their runs scatter.
        residuals: Mean time of each count over the law's, less 1.
    """

    law: Law
    coefficients: tuple[float, ...]
    counts: tuple[int, ...]
    runs: int
    spread: float | None
    freedom: int
    lacks: bool
    residuals: dict[int, float]
    covariance: "Array" = field(repr=False, compare=False)
    """Of the coefficients, for a spread of 1, [terms, terms]."""

    @property
    def written(self) -> str:
        """The law with its numbers."""
        return self.law.written(self.coefficients)

    @property
    def smallest(self) -> int:
        """Fewest workers that it has seen."""
        return self.counts[0]

    @property
    def largest(self) -> int:
        """Most workers that it has seen."""
        return self.counts[-1]

    def beyond(self, workers: float) -> bool:
        """Whether a count lies outside of what was measured."""
        return not self.smallest <= workers <= self.largest

    def seconds(self, workers: float) -> float:
        """T(n) by the law."""
        return float(self.law.seconds([workers], self.coefficients)[0])

    def time(self, workers: float) -> Estimate:
        """Seconds of a training on so many workers, with the 95 % prediction interval of a run."""
        return self._about(self.seconds(workers), self._gradient(workers))

    def ratio(self, workers: float, reference: float) -> Estimate:
        """T(reference) / T(workers), likewise of a run on `workers` against the law at `reference`."""
        if workers == reference:
            return Estimate(1.0, 1.0, 1.0)
        value = self.seconds(reference) / self.seconds(workers)
        return self._about(value, self._gradient(workers) - self._gradient(reference))

    def _gradient(self, workers: float) -> "Array":
        """Of log T(n) by the coefficients; its sign does not matter."""
        import numpy as np

        columns = self.law.columns([workers])[0]
        found: Array = columns / float(columns @ np.asarray(self.coefficients))
        return found

    def _about(self, value: float, gradient: "Array") -> Estimate:
        if self.spread is None or self.freedom < LEAST_FREEDOM:
            return Estimate(value)
        leverage = float(gradient @ self.covariance @ gradient)
        factor = exponential(student(self.freedom) * self.spread * math.sqrt(1 + max(0.0, leverage)))
        return Estimate(value, value / factor, value * factor)


def level(counts: "Array", seconds: "Array") -> "Array":
    """Geometric mean of each run's count, [runs]."""
    import numpy as np

    found: Array = np.exp(_means(counts, np.log(seconds)))
    return found


def _means(counts: "Array", values: "Array") -> "Array":
    """Mean of each run's count, [runs]."""
    import numpy as np

    _, place = np.unique(counts, return_inverse=True)
    found: Array = (np.bincount(place, values) / np.bincount(place))[place]
    return found


def relative(law: Law, counts: "Array", seconds: "Array") -> "Array":
    """Coefficients of the least squares of relative errors, none negative."""
    import numpy as np
    from scipy.optimize import nnls

    weight = 1 / law.left(counts, level(counts, seconds))
    columns = law.columns(counts) * weight[:, None]
    size = np.linalg.norm(
        columns, axis=0
    )  # terms of one size, so that no tolerance takes a small one for none
    found: Array = nnls(columns / size, law.left(counts, seconds) * weight)[0] / size
    return found


def fit(law: Law, counts: Sequence[int], seconds: Sequence[float]) -> Fit | None:
    """Fit a law to runs: one number of workers and one training time each.

    Returns None where there are fewer counts than terms, and for times that are not positive numbers.
    """
    import numpy as np

    n, times = np.asarray(counts, float), np.asarray(seconds, float)
    different = sorted(set(counts))
    if len(different) < len(law.terms) or not np.all(np.isfinite(times)) or np.any(times <= 0):
        return None
    coefficients = relative(law, n, times)
    errors = np.log(times / law.seconds(n, coefficients))
    means = dict(zip(n.tolist(), _means(n, errors).tolist(), strict=True))
    scaled = law.columns(n) / (law.columns(n) @ coefficients)[:, None]
    covariance: Array = np.asarray(np.linalg.pinv(scaled.T @ scaled), np.float64)
    spread, freedom, lacks = _spread(n, errors, len(different), len(law.terms))
    return Fit(
        law=law,
        coefficients=tuple(float(value) for value in coefficients),
        counts=tuple(different),
        runs=len(times),
        spread=spread,
        freedom=freedom,
        lacks=lacks,
        residuals={count: math.expm1(means[count]) for count in different},
        covariance=covariance,
    )


def _spread(n: "Array", errors: "Array", counts: int, terms: int) -> tuple[float | None, int, bool]:
    """Standard deviation about the law, its degrees of freedom, and whether the law lacks something."""
    import numpy as np
    from scipy.special import fdtrc

    total, freedom = float(errors @ errors), len(errors) - terms
    if freedom < 1:
        return None, 0, False
    means = _means(n, errors)
    within, within_freedom = float(np.sum((errors - means) ** 2)), len(errors) - counts
    between, between_freedom = float(means @ means), counts - terms
    if within > 0 and within_freedom and between_freedom:
        ratio = (between / between_freedom) / (within / within_freedom)
        if fdtrc(between_freedom, within_freedom, ratio) < LEVEL:
            return math.sqrt(between / between_freedom), between_freedom, True
    return math.sqrt(total / freedom), freedom, False
