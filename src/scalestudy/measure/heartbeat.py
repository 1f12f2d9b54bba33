"""How far a process has come: told by the thread that does the work, read by one that watches it."""

import time
from typing import NamedTuple


class Mark(NamedTuple):
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
        self.last = Mark(0, "start-up", 0, 0, time.monotonic(), 0.0)
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
        self.last = Mark(last.number + 1, phase, epoch, step, now, slowest)
