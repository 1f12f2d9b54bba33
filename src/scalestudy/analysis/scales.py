"""The scale on which values of one kind spread alike and symmetrically, and on which intervals are computed.

Positive quantities (throughput, seconds) spread by factors, so they are taken on logarithms. A metric
that lies in [0, 1] is taken as asin(sqrt(q)), on which a proportion spreads alike wherever it lies
(Anscombe, "The transformation of Poisson, binomial and negative-binomial data", Biometrika 35, 1948);
unlike a logit, it has room for values of exactly 0 and 1. Whatever else a task calls its quality stays
on its own scale, as does one that nothing is known of.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Scale:
    """A monotonic transform: where values may lie, how to get there, and how to come back."""

    name: str
    forward: Callable[[float], float]
    back: Callable[[float], float]
    """Takes any number: what lies outside of the scale comes back as its end."""
    holds: Callable[[float], bool]
    centre: Callable[[Sequence[float]], float] = fmean
    """The mean that is reported, in the values' own unit."""

    def ends(self, centre: float, reach: float) -> tuple[float, float]:
        """`centre` less and plus `reach`, which is a length on the scale; always about `centre`."""
        if reach == 0:  # going there and back would round
            return centre, centre
        middle = self.forward(centre)
        return min(centre, self.back(middle - reach)), max(centre, self.back(middle + reach))


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive values."""
    # Against the first value, so that equal values come out as they went in.
    return values[0] * math.exp(fmean([math.log(value / values[0]) for value in values]))


def exponential(value: float) -> float:
    """exp(value), infinite where that is beyond the largest float."""
    return math.exp(value) if value < 700 else math.inf


def _sine_squared(angle: float) -> float:
    return math.sin(min(max(angle, 0.0), math.pi / 2)) ** 2


LINEAR = Scale("linear", lambda value: value, lambda value: value, math.isfinite)
LOGARITHM = Scale(
    "logarithm", math.log, exponential, lambda value: 0 < value < math.inf, centre=geometric_mean
)
ARCSINE = Scale(
    "arcsine", lambda value: math.asin(math.sqrt(value)), _sine_squared, lambda value: 0 <= value <= 1
)


def quality_scale(bounded: bool | None, values: Iterable[float]) -> Scale:
    """Scale of a metric: ARCSINE if it is known to lie in [0, 1] and no finite value says otherwise."""
    known = [value for value in values if math.isfinite(value)]
    return ARCSINE if bounded and all(0 <= value <= 1 for value in known) else LINEAR


def decimals(scale: Scale, values: Iterable[float]) -> int:
    """Decimals of a metric that tell a fiftieth of it by two digits; three where it lies in [0, 1]."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if scale is ARCSINE or not sizes:
        return 3
    return max(0, 1 - math.floor(math.log10(fmean(sizes) / 50)))
