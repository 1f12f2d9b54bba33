"""How many runs of each row failed, and whether that is more than on other rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from scalestudy.analysis.estimate import SIGNIFICANT
from scalestudy.analysis.measures import Measures
from scalestudy.analysis.runs import Key, Planned, key_of


@dataclass(frozen=True)
class Failures:
    """How many runs of a row ended in an error or learned nothing."""

    failed: int
    runs: int

    @property
    def share(self) -> float:
        """Share of failed runs; 0 if there was none."""
        if not self.runs:
            return 0.0
        return self.failed / self.runs

    def exceed(self, other: "Failures") -> bool:
        """Whether significantly more runs fail than of another row (Fisher's exact test, one-sided)."""
        # Fisher's test is one-sided: as few failures or fewer are no matter of it.
        if self.share <= other.share:
            return False
        failed = self.failed + other.failed
        runs = self.runs + other.runs
        # Ways to choose these runs so that as many or more of the failed ones are among them.
        more = 0
        for count in range(self.failed, min(failed, self.runs) + 1):
            sound = self.runs - count
            more += comb(failed, count) * comb(runs - failed, sound)
        return more / comb(runs, self.runs) <= SIGNIFICANT

    def __str__(self) -> str:
        return f"{self.failed} of {self.runs} runs"


def count_failures(
    keys: Sequence[Key],
    measures: Measures,
    planned: Sequence[Planned],
) -> dict[Key, Failures]:
    """Count the failed trainings of every row: those that learned nothing, and those that ended in an error.

    Rows with equal updates share their trainings.
    """
    errors = Counter[Key]()
    for point in planned:
        if point.state == "failed":
            key = key_of(point.strategy, point.workers, dict(point.swept))
            errors[key] += 1
    counted = {}
    for key in keys:
        failed = len(measures.failed[key]) + errors[key]
        # A run that ended in an error left no training.
        runs = len(measures.trained[key]) + errors[key]
        counted[key] = Failures(failed, runs)
    return counted


def pool(
    failures: Mapping[Key, Failures],
    keys: Iterable[Key],
    measures: Measures,
) -> Failures:
    """Failures of several rows together, those with equal updates once."""
    most: dict[Key, Failures] = {}
    # In rising order, so that of rows with equal updates the one with most failures remains.
    for key in sorted(keys, key=lambda key: failures[key].failed):
        most[measures.updates[key]] = failures[key]
    failed = runs = 0
    for row in most.values():
        failed += row.failed
        runs += row.runs
    return Failures(failed, runs)
