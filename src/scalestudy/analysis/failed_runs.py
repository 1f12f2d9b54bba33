"""How many runs of each row failed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from scalestudy.analysis.measures import Measures
from scalestudy.analysis.runs import Key, Planned, key_of
from scalestudy.analysis.statistics import SIGNIFICANT


@dataclass(frozen=True)
class Failures:
    """How many runs of a row ended in an error or learned nothing."""

    failed: int
    runs: int

    @property
    def share(self) -> float:
        """Share of failed runs; 0 if there was none."""
        return self.failed / self.runs if self.runs else 0.0

    def exceed(self, other: "Failures") -> bool:
        """Whether significantly more runs fail than of another row (Fisher's exact test, one-sided)."""
        failed, runs = self.failed + other.failed, self.runs + other.runs
        more = sum(
            comb(failed, count) * comb(runs - failed, self.runs - count)
            for count in range(self.failed, min(failed, self.runs) + 1)
        )
        return self.share > other.share and more / comb(runs, self.runs) <= SIGNIFICANT

    def __str__(self) -> str:
        return f"{self.failed} of {self.runs} runs"


def count_failures(
    keys: Sequence[Key], measures: Measures, planned: Sequence[Planned]
) -> dict[Key, Failures]:
    """Count the failed trainings of every row: those that learned nothing, and those that ended in an error.

    Rows with equal updates share their trainings.
    """
    errors = Counter(
        key_of(point.strategy, point.workers, dict(point.swept))
        for point in planned
        if point.state == "failed"
    )
    return {
        key: Failures(len(measures.failed[key]) + errors[key], len(measures.trained[key]) + errors[key])
        for key in keys
    }


def pooled(failures: Mapping[Key, Failures], keys: Iterable[Key], measures: Measures) -> Failures:
    """Failures of several rows together, those with equal updates once."""
    rising = sorted(keys, key=lambda key: failures[key].failed)
    most = {measures.updates[key]: failures[key] for key in rising}
    return Failures(sum(row.failed for row in most.values()), sum(row.runs for row in most.values()))
