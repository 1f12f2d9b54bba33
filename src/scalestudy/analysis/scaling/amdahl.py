"""Amdahl's law fitted to training times: T(n) = s + p / n.

Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities",
AFIPS (1967). Both parts are held non-negative, and errors count by their share of the time, since times
spread by factors. The interval of the serial fraction f = s / (s + p)
is a profile likelihood (Bates and Watts, "Nonlinear regression analysis", 1988, section 6.1), which
stays right where f touches 0, as it does when a strategy scales almost ideally.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalestudy.analysis.scaling.fit import level, relative
from scalestudy.analysis.scaling.law import CONSTANT, SHARED, Law
from scalestudy.analysis.statistics import CONFIDENCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MINIMUM_COUNTS = 3
AMDAHL = Law("amdahl", "Amdahl's law", (CONSTANT, SHARED), "Amdahl 1967")


@dataclass(frozen=True)
class AmdahlFit:
    """Serial and parallel time of a training in seconds, and what follows from them."""

    serial_seconds: float
    parallel_seconds: float
    fraction: float
    """Serial share of the one-worker time."""
    fraction_low: float | None
    fraction_high: float | None
    largest_count: int
    """Largest worker count that the fit has seen."""

    @property
    def limit(self) -> float | None:
        """Speed-up that no number of workers exceeds; None when the fit sees no serial part."""
        return _inverse(self.fraction)

    @property
    def limit_low(self) -> float | None:
        """Lower end of the limit's interval."""
        return _inverse(self.fraction_high)

    @property
    def limit_high(self) -> float | None:
        """Upper end of the limit's interval; None when it is without bound or there is no interval."""
        return _inverse(self.fraction_low)

    def seconds(self, workers: float) -> float:
        """Training time that the fit gives for a worker count."""
        return self.serial_seconds + self.parallel_seconds / workers

    def workers_at(self, efficiency: float) -> float | None:
        """Worker count at which efficiency falls to this value; None when the fit sees no serial part."""
        if self.fraction < 1e-9:
            return None
        return 1 + (1 / efficiency - 1) / self.fraction


def fit_amdahl(workers: Sequence[int], seconds: Sequence[float]) -> AmdahlFit | None:
    """Least-squares fit over runs: one worker count and one training time each.

    Returns None below three different worker counts: a line through two points always fits. The
    interval needs at least two runs more than the two parameters.
    """
    import numpy as np

    if len(set(workers)) < MINIMUM_COUNTS:
        return None
    n, times = np.asarray(workers, float), np.asarray(seconds, float)
    if not np.all(np.isfinite(times)) or np.any(times <= 0):
        return None
    serial, parallel = (float(value) for value in relative(AMDAHL, n, times))
    fraction = serial / (serial + parallel)
    low, high = _profile(n, times, fraction) if len(times) >= 4 else (None, None)
    return AmdahlFit(serial, parallel, fraction, low, high, int(n.max()))


def _profile(n: "NDArray[np.float64]", times: "NDArray[np.float64]", best: float) -> tuple[float, float]:
    """Fractions whose best sum of squares the data do not reject at the 5 % level."""
    import numpy as np
    from scipy.optimize import brentq
    from scipy.special import fdtri

    scaled = times / level(n, times)

    def squares(fraction: float) -> float:
        shape = (fraction + (1 - fraction) / n) * scaled / times
        return float(np.sum((scaled - shape * (scaled @ shape) / (shape @ shape)) ** 2))

    freedom = len(times) - 2
    # A perfect fit still has rounding; without this floor the bracket below would hold no root.
    floor = 1e-18 * float(scaled @ scaled)
    bound = (squares(best) + floor) * (1 + float(fdtri(1, freedom, CONFIDENCE)) / freedom)

    def excess(fraction: float) -> float:
        return squares(fraction) - bound

    low = 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, best))
    high = 1.0 if excess(1.0) <= 0 else float(brentq(excess, best, 1.0))
    return low, high


def _inverse(fraction: float | None) -> float | None:
    return None if fraction is None or fraction < 1e-9 else 1 / fraction
