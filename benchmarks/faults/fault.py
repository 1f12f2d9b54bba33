"""A fault and its outcome."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from faults.scene import Scene

Planter = Callable[[Scene, random.Random], str]
"""Injects a fault into a run that has reached a phase; returns a pattern that the run's reason must match, or
"" if the run must continue unaffected."""


@dataclass(frozen=True)
class Fault:
    """A fault that is injected into a run.

    Attributes:
        name: Its name in tables.
        plant: Injects it.
        lift: Removes it again after the run has ended.
        phases: Phases in which it can be injected; any if empty.
        strategies: Strategies into whose runs it can be injected; all if empty.
        by_launcher: Whether it hits the launcher, so that no process is left to print a reason.
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
    """The outcome of one fault.

    Attributes:
        fault: Its name.
        strategy: Strategy of the run.
        phase: Phase in which it was injected.
        lost: Results that were lost, each in a sentence.
        leaked: Processes and files left behind.
        misnamed: Messages that do not name the fault.
        reason: The reported reason.
        seconds: Time from the fault to the end of the run.
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
            len(own),
            sum(each.survived for each in own),
            sum(bool(each.lost) for each in own),
            sum(bool(each.leaked) for each in own),
            sum(bool(each.misnamed) for each in own),
        ]
        lines.append(
            f"{name:{width}}  {counts[0]:7}  {counts[1]:8}  {counts[2]:4}  {counts[3]:6}  {counts[4]:8}"
        )
    return "\n".join(lines)
