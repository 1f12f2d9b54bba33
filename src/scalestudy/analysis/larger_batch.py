"""The critical batch: how many samples the larger global batch of more workers costs.

A training takes E(B) = E_min (1 + B / B_crit) samples to a quality with a global batch of B. Below the
critical batch B_crit a larger batch costs few additional samples; at B_crit it takes twice the fewest
(McCandlish et al., "An empirical model of large-batch training", arXiv:1812.06162, 2018, equation 2.11). E is
linear in B, so the fit is ordinary least squares on the mean of each batch, and intervals of ratios are
Fieller's ("Some problems in interval estimation", Journal of the Royal Statistical Society B 16, 1954).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from scalestudy.analysis.estimate import Estimate, student

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_BATCHES = 4
"""Batches that a fit takes: two parameters, and two degrees of freedom to check them."""


@dataclass(frozen=True)
class CriticalBatch:
    """The fitted curve.

    Attributes:
        batches: Global batches that it was fitted to, ascending.
        least: E_min, in the unit of the samples given.
        critical: B_crit; without a `high` end if more samples for larger batches are not significant.
        misfit: Largest relative deviation of a measured mean from the curve.
        misfit_at: The batch of that deviation.
    """

    batches: tuple[int, ...]
    least: Estimate
    critical: Estimate
    misfit: float
    misfit_at: int
    _solution: "Array"
    _covariance: "Array"

    def ratio(self, batch: int, reference: int) -> Estimate:
        """Predicted samples with `batch`, divided by those with `reference`."""
        return _ratio(
            self._solution,
            self._covariance,
            (1.0, batch),
            (1.0, reference),
            len(self.batches) - 2,
        )


def fit_critical_batch(samples: Mapping[int, Sequence[float]]) -> CriticalBatch | None:
    """Fit the samples (or epochs) that runs needed, by global batch; None for fewer than four batches.

    Also None if a larger batch needs fewer samples: then there is no critical batch in the range measured.
    """
    import numpy as np

    if len(samples) < LEAST_BATCHES:
        return None
    batches = sorted(samples)
    means = [fmean(samples[batch]) for batch in batches]
    needed = np.array(means)
    constant = np.ones(len(batches))
    linear = np.array(batches, float)
    design = np.stack([constant, linear], 1)
    inverse = np.linalg.inv(design.T @ design)
    solution = inverse @ design.T @ needed
    # A curve that falls, or that needs no samples at a batch of 0, has no critical batch.
    if solution[0] <= 0 or solution[1] <= 0:
        return None
    curve = design @ solution
    freedom = len(batches) - 2
    squares = float(np.square(needed - curve).sum())
    covariance = inverse * squares / freedom
    deviations = np.abs(needed / curve - 1)
    worst = int(deviations.argmax())
    least = float(solution[0])
    error = math.sqrt(covariance[0, 0])
    reach = student(freedom) * error
    return CriticalBatch(
        tuple(batches),
        Estimate(least, least - reach, least + reach),
        # B_crit = E_min / slope, by the formula of the curve.
        _ratio(solution, covariance, (1.0, 0.0), (0.0, 1.0), freedom),
        float(deviations[worst]),
        batches[worst],
        solution,
        covariance,
    )


def _ratio(
    solution: "Array",
    covariance: "Array",
    top: Sequence[float],
    bottom: Sequence[float],
    freedom: int,
) -> Estimate:
    """Fieller's interval of the ratio of two linear combinations of the coefficients."""
    import numpy as np

    a = np.array(top)
    b = np.array(bottom)
    over = float(a @ solution)
    under = float(b @ solution)
    # The ends solve second * r**2 - 2 * first * r + zeroth = 0.
    t2 = student(freedom) ** 2
    of_under = float(b @ covariance @ b)
    of_both = float(a @ covariance @ b)
    of_over = float(a @ covariance @ a)
    second = under**2 - t2 * of_under
    first = over * under - t2 * of_both
    zeroth = over**2 - t2 * of_over
    discriminant = first**2 - second * zeroth
    root = math.sqrt(max(0.0, discriminant))
    low = 0.0
    if first + root > 0:
        low = max(0.0, zeroth / (first + root))
    # If the denominator may be zero, there is no upper end.
    high = None
    if second > 0:
        high = (first + root) / second
    return Estimate(over / under, low, high)
