"""How much faster a training becomes on twice the workers, and up to which count a rule holds."""

from dataclasses import dataclass

from scalestudy.analysis.statistics import Estimate
from scalestudy.features.proposal.subject import Subject


@dataclass(frozen=True)
class Doubling:
    """One doubling that was measured."""

    start: int
    factor: Estimate
    """How many times faster `2 * start` workers train than `start`."""

    @property
    def end(self) -> int:
        """Twice the workers."""
        return 2 * self.start

    def holds(self, least: float) -> bool:
        """Whether it is as fast as asked for, on average."""
        return self.factor.value is not None and self.factor.value >= least

    def is_certain(self, least: float) -> bool:
        """Whether the interval lies above (or below) what is asked for."""
        low, high = self.factor.low, self.factor.high
        return low is not None and high is not None and (low >= least or high < least)


def doublings(subject: Subject) -> list[Doubling]:
    """Every pair of n and 2n workers that was measured, by n."""
    pairs = [(row, subject.of(2 * row.workers)) for row in subject.rows]
    found = [Doubling(row.workers, subject.faster(more, row)) for row, more in pairs if more is not None]
    return [each for each in found if each.factor.value is not None]


def holds_to(found: list[Doubling], least: float) -> int | None:
    """The largest count to which every doubling measured holds; None where the first fails."""
    reached = None
    for each in sorted(found, key=lambda each: each.end):
        if not each.holds(least):
            break
        reached = each.end
    return reached
