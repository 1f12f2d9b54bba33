"""The progress of the training thread, which marks it in a heartbeat."""

import time
from typing import NamedTuple

SERVING = "serving"
"""Phase of a process that computes for rank 0, whose marks follow those of rank 0."""
STEPS = ("input", "step", "backward")
"""Phases of a call of the compiled step, which take similar times in every call."""
AT_MOST = 50
"""Maximum heartbeats per second of all ranks together, to limit the load on a shared file system."""
LATE = 4
"""Missed heartbeats after which a rank is checked for being alive."""


class ProgressMark(NamedTuple):
    """The position of a process in a run.

    Attributes:
        number: Number of marks so far; equal on all ranks at the same position.
        phase: Current phase of the process.
        epoch: Current epoch, counted from 1; 0 before the first.
        step: Steps completed in the epoch.
        since: `time.monotonic()` of this mark.
        slowest: Longest seconds between two marks during steps so far; 0 before the first step.
    """

    number: int
    phase: str
    epoch: int
    step: int
    since: float
    slowest: float


class Heartbeat:
    """The latest mark of a process. It is replaced atomically, so other threads can read it."""

    def __init__(self) -> None:
        self.last = ProgressMark(
            number=0,
            phase="start-up",
            epoch=0,
            step=0,
            since=time.monotonic(),
            slowest=0.0,
        )

    def enter(self, phase: str) -> None:
        """Mark that the process has entered `phase`."""
        self.step(self.last.epoch, self.last.step, phase)

    def exchange(self) -> None:
        """Mark that the process has computed its part of a step, and from here on may wait for others."""
        if self.last.phase in ("step", "backward"):
            self.enter("backward")

    def step(
        self,
        epoch: int,
        step: int,
        phase: str,
    ) -> None:
        """Mark that `step` steps of `epoch` are done and the process has entered `phase`."""
        last = self.last
        now = time.monotonic()
        slowest = last.slowest
        # Other phases, such as an evaluation, may rightly take much longer than a step.
        if last.phase in STEPS:
            slowest = max(slowest, now - last.since)
        # One assignment, so that a thread that reads meanwhile never sees half of a mark.
        self.last = ProgressMark(
            number=last.number + 1,
            phase=phase,
            epoch=epoch,
            step=step,
            since=now,
            slowest=slowest,
        )
