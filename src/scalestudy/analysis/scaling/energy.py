"""Power against workers: P(n) = p + q n, none of them negative, from the energy that runs recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalestudy.analysis.costs import JOULES, costs_of
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.scaling.series import Series


@dataclass(frozen=True)
class Power:
    """Watts drawn whatever the workers, and those of each."""

    fixed: float
    each: float
    of: str = ""
    """What draws it: "gpus", "cpus" or "gpus + cpus"."""

    def watts(self, workers: float) -> float:
        """Mean power of a training on so many workers."""
        return self.fixed + self.each * workers


def power_of(series: Series, groups: Mapping[Key, Sequence[Run]]) -> Power | None:
    """Power fitted to the counts whose energy is known.

    None with fewer than two of them, and where some tell of other devices than others.
    """
    from scipy.optimize import nnls

    counts, watts = [], []
    of: set[str] = set()
    for count in series.different:
        for run in groups[series.key.with_(series.key.strategy, count)]:
            cost, seconds = costs_of([run]), run.result.training_seconds
            if cost.watt_hours and seconds:
                counts.append(count)
                watts.append(cost.watt_hours * JOULES / seconds)
                of.add(cost.energy_of or "")
    if len(of) != 1 or len(set(counts)) < 2:
        return None
    n, drawn = np.asarray(counts, float), np.asarray(watts)
    fixed, each = nnls(np.stack((1 / drawn, n / drawn), axis=1), np.ones(len(n)))[0]
    return Power(float(fixed), float(each), of.pop())
