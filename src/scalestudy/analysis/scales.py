"""Scales on which the intervals of quantities are computed, and the mean that is reported on each.

Positive quantities (throughput, seconds) vary by factors, so their intervals are computed on logarithms. A
metric in [0, 1] is transformed to asin(sqrt(q)), on which the variance of a proportion does not depend on its
value (Anscombe, Biometrika 35, 1948) and exactly 0 and 1 are allowed. Any other metric keeps its own scale.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive values."""
    # Relative to the first value, so that the mean of equal values is exact.
    first = values[0]
    logarithms = [math.log(value / first) for value in values]
    factor = math.exp(fmean(logarithms))
    return first * factor


def exponential(value: float) -> float:
    """exp(value); infinity instead of an overflow."""
    # The largest double is exp(709.78).
    if value < 700:
        return math.exp(value)
    return math.inf


@dataclass(frozen=True)
class Scale:
    """A monotonic transform with its inverse, its domain, and the mean that is reported on it.

    `back` accepts any number and clips it to the range of `forward`.
    """

    forward: Callable[[float], float]
    back: Callable[[float], float]
    holds: Callable[[float], bool]
    centre: Callable[[Sequence[float]], float] = fmean

    def ends(self, centre: float, reach: float) -> tuple[float, float]:
        """Return `centre` minus and plus `reach`, a length on the scale; the result encloses `centre`."""
        if reach == 0:  # avoid the rounding error of the transform
            return centre, centre
        middle = self.forward(centre)
        low = self.back(middle - reach)
        high = self.back(middle + reach)
        # The mean that is reported need not be the middle on the scale: an arithmetic mean on asin(sqrt(q)).
        return min(centre, low), max(centre, high)


def _positive(value: float) -> bool:
    return 0 < value < math.inf


def _share(value: float) -> bool:
    return 0 <= value <= 1


def _angle_of(share: float) -> float:
    """The variance-stabilising transform of a share (Anscombe, Biometrika 35, 1948)."""
    return math.asin(math.sqrt(share))


def _share_of(angle: float) -> float:
    # Back from an angle beyond the ends, an interval would fold into itself, so that it is cut there.
    cut = min(max(angle, 0.0), math.pi / 2)
    return math.sin(cut) ** 2


LINEAR = Scale(float, float, math.isfinite)
LOGARITHM = Scale(math.log, exponential, _positive, geometric_mean)
ARCSINE = Scale(_angle_of, _share_of, _share)


def quality_scale(bounded: bool | None, values: Iterable[float]) -> Scale:
    """Scale of a metric: ARCSINE if it is known to lie in [0, 1] and all finite values do, else LINEAR."""
    if not bounded:
        return LINEAR
    # A diverged run says nothing about the scale.
    finite = filter(math.isfinite, values)
    if all(map(ARCSINE.holds, finite)):
        return ARCSINE
    return LINEAR


def quality_decimals(scale: Scale, values: Iterable[float]) -> int:
    """Decimals that show a fiftieth of a metric with two digits; three for metrics in [0, 1]."""
    sizes = []
    for value in values:
        # A zero has no size to which digits could be fitted.
        if value and math.isfinite(value):
            sizes.append(abs(value))
    if scale is ARCSINE or not sizes:
        return 3
    fiftieth = fmean(sizes) / 50
    exponent = math.floor(math.log10(fiftieth))
    return max(0, 1 - exponent)
