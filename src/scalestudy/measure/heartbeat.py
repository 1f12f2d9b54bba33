"""How far a process has come, told by the thread that does the work; and for how long nothing has changed."""

import time
from collections.abc import Callable
from typing import NamedTuple


class ProgressMark(NamedTuple):
    """A place in a run.

    Attributes:
        number: How many marks there were; alike on all ranks at the same place.
        phase: What the process is at.
        epoch: Epoch under way, counted from 1; 0 before the first.
        step: Steps done in it.
        since: `time.monotonic()` at which it got there.
        slowest: Most seconds between two marks within the steps so far; 0 before the first.
    """

    number: int
    phase: str
    epoch: int
    step: int
    since: float
    slowest: float


STEPS = ("input", "step")
"""Phases of a call of the compiled step, whose seconds are alike from call to call."""


class Heartbeat:
    """The latest mark of a process. A mark takes a microsecond or a few, and no lock."""

    def __init__(self) -> None:
        self.last = ProgressMark(0, "start-up", 0, 0, time.monotonic(), 0.0)
        """A tuple that is replaced as a whole, so that another thread never sees half of one."""

    def enter(self, phase: str) -> None:
        """The process has come to this phase."""
        last = self.last
        self._mark(phase, last.epoch, last.step)

    def step(self, epoch: int, step: int, phase: str) -> None:
        """So many steps of this epoch are done, and the process has come to this phase."""
        self._mark(phase, epoch, step)

    def _mark(self, phase: str, epoch: int, step: int) -> None:
        last, now = self.last, time.monotonic()
        slowest = max(last.slowest, now - last.since) if last.phase in STEPS else last.slowest
        self.last = ProgressMark(last.number + 1, phase, epoch, step, now, slowest)


class ProgressTimer:
    """Adds up for how long nothing has changed, in seconds in which this process could have seen it.

    While a job is suspended nobody's time runs: between two looks no more than `longest` counts.

    Args:
        longest: Most seconds that may lie between two looks.
        now: The time in seconds.

    Attributes:
        seconds: Since what was seen has changed.
    """

    def __init__(self, longest: float, now: Callable[[], float] = time.monotonic) -> None:
        self._longest, self._now = longest, now
        self._seen: object = None
        self._looked = now()
        self.seconds = 0.0

    def look(self, seen: object) -> float:
        """Look again; seconds since what is seen has changed."""
        now = self._now()
        between, self._looked = min(now - self._looked, self._longest), now
        self.seconds = 0.0 if seen != self._seen else self.seconds + between
        self._seen = seen
        return self.seconds
