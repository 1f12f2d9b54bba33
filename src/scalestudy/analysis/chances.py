"""How likely a difference as large as the measured one is by chance alone: Student's tests, two-sided."""

import math
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import TypeVar

from scalestudy.analysis.statistics import Spread, welch

K = TypeVar("K")
LEVEL = 0.05
"""Below which a difference counts as real, once it is corrected for the number of comparisons."""


def unpaired(first: Iterable[float], second: Iterable[float], spreads: tuple[Spread, Spread]) -> float:
    """P value of Welch's test (1947) of two means, all on the scale of the spreads."""
    ours, theirs = list(first), list(second)
    parts = spreads[0].variance / len(ours), spreads[1].variance / len(theirs)
    return _two_sided(fmean(ours) - fmean(theirs), math.sqrt(sum(parts)), welch(*spreads, *parts))


def paired(changes: Iterable[float], shared: Spread) -> float:
    """P value of the paired t test; `shared` is the spread of a run once its pair's share is taken away."""
    values = list(changes)
    return _two_sided(fmean(values), math.sqrt(2 * shared.variance / len(values)), shared.freedom)


def holm(values: Mapping[K, float]) -> dict[K, float]:
    """P values corrected for their number: Holm, "A simple sequentially rejective multiple test procedure".

    Scandinavian Journal of Statistics 6 (1979). Below `LEVEL` all together err in no more than that share.
    """
    found: dict[K, float] = {}
    largest = 0.0
    for index, key in enumerate(sorted(values, key=lambda key: values[key])):
        largest = max(largest, min(1.0, (len(values) - index) * values[key]))
        found[key] = largest
    return {key: found[key] for key in values}


def _two_sided(difference: float, error: float, freedom: float) -> float:
    from scipy.special import stdtr

    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(difference) / error))
