"""Power against workers: P(n) = p + q n, none of them negative, from the energy that runs recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalestudy.analysis.costs import JOULES, costs_of
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.scaling.fit import fit
from scalestudy.analysis.scaling.law import Law, Term
from scalestudy.analysis.scaling.series import Series

POWER = Law(
    "power",
    "power that grows with the workers",
    (Term("", lambda n: n**0, "drawn whatever the workers"), Term(" n", lambda n: n, "of each worker")),
    "",
)


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
    counts, watts = [], []
    of: set[str] = set()
    for count in series.different:
        for run in groups[series.key.with_(series.key.strategy, count)]:
            cost, seconds = costs_of([run]), run.result.training_seconds
            if cost.watt_hours and seconds:
                counts.append(count)
                watts.append(cost.watt_hours * JOULES / seconds)
                of.add(cost.energy_of or "")
    found = fit(POWER, counts, watts) if len(of) == 1 else None
    return Power(found.coefficients[0], found.coefficients[1], of.pop()) if found else None
