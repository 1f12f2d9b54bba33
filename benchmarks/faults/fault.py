"""What a fault is, and what was made of it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from faults.scene import Scene

Planter = Callable[[Scene, random.Random], str]
"""Plants a fault in a run that has reached a phase; returns a pattern that its reason must match, "" where
the run must go on as if nothing had been."""


@dataclass(frozen=True)
class Fault:
    """Something that happens to a run.

    Attributes:
        name: What tables call it.
        plant: Does it.
        lift: Takes it away again, once the run has ended.
        phases: Where it is planted; any when empty.
        strategies: Whose runs it is planted in; all when empty.
        by_launcher: Whether it is the launcher that is hit, so that nobody is left to print a reason.
    """

    name: str
    plant: Planter
    lift: Callable[[Scene], None] = lambda _: None
    phases: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    by_launcher: bool = False

    def suits(self, strategy: str, phase: str) -> bool:
        return (not self.phases or phase in self.phases) and (
            not self.strategies or strategy in self.strategies
        )


@dataclass
class Outcome:
    """What was made of one fault.

    Attributes:
        fault: Its name.
        strategy: Of the run.
        phase: Where it was planted.
        lost: What was lost by it, each in a sentence.
        leaked: What outlived it.
        misnamed: What was said of it, where that is not what it was.
        reason: What was said.
        seconds: How long it took until the run had ended.
    """

    fault: str
    strategy: str
    phase: str
    lost: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)
    reason: str = ""
    seconds: float = 0.0

    @property
    def survived(self) -> bool:
        return not (self.lost or self.leaked or self.misnamed)


def table(outcomes: list[Outcome]) -> str:
    """Counts by fault, one line each, and a last line for all."""
    names = sorted({each.fault for each in outcomes})
    width = max(map(len, [*names, "all"]), default=3)
    lines = [f"{'fault':{width}}  planted  survived  lost  leaked  misnamed"]
    for name in [*names, "all"]:
        own = [each for each in outcomes if name in (each.fault, "all")]
        counts = [
            len(own), sum(each.survived for each in own), sum(bool(each.lost) for each in own),
            sum(bool(each.leaked) for each in own), sum(bool(each.misnamed) for each in own),
        ]  # fmt: skip
        lines.append(
            f"{name:{width}}  {counts[0]:7}  {counts[1]:8}  {counts[2]:4}  {counts[3]:6}  {counts[4]:8}"
        )
    return "\n".join(lines)
