"""When a run is kept, and when it is left: decided by rank 0, alike on every rank at the same call."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalestudy.engines.group import Group

ASK_EVERY = 5.0
"""Seconds between two questions whether to stop, where several processes must agree."""
LOOK_EVERY = 1.0
"""The same for a process alone, which only looks for a file."""
KEEP_EVERY = 60.0
"""Least seconds between two checkpoints after epochs; also from the start to the first."""
KEEP_WITHIN = 600.0
"""Seconds after which a checkpoint is also taken within an epoch."""


class Decision(NamedTuple):
    """What all ranks do now: leave (with a checkpoint), or only take one."""

    stop: bool
    keep: bool


class Agreement:
    """Lets all ranks do the same at the same call.

    They agree by a sum over processes, which costs time; so they also agree on the number of calls
    until the next one, from the seconds that a call takes.

    Args:
        asked: Whether the run is asked to stop; only rank 0's answer counts.
        group: The processes of the run.
        now: The time in seconds.
    """

    def __init__(
        self, asked: Callable[[], bool], group: Group, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._asked, self._group, self._now = asked, group, now
        self._kept = self._checked = now()
        self._calls, self._until = 0, 1

    def due(self) -> bool:
        """Count a call; whether it is time for `within_epoch`, the same on every rank."""
        self._calls += 1
        alone = self._group.size == 1
        return self._calls >= self._until or (alone and self._now() - self._checked >= LOOK_EVERY)

    def within_epoch(self) -> Decision:
        """Decide between two calls. Every rank must ask when `due`."""
        pace = (self._now() - self._checked) / max(1, self._calls)
        decision, pace = self._decide(KEEP_WITHIN, pace)
        self._calls, self._until = 0, max(1, int(ASK_EVERY / max(pace, 1e-9)))
        self._checked = self._now()
        return decision

    def after_epoch(self) -> Decision:
        """Decide between two epochs. Every rank must ask."""
        return self._decide(KEEP_EVERY, 0.0)[0]

    def _decide(self, keep_every: float, pace: float) -> tuple[Decision, float]:
        processes = self._group.size
        # Whole nanoseconds below 2^53 add up to the same in any order, so on every rank.
        mine = np.array([0, 0, round(pace * 1e9)], np.float64)
        if self._group.rank == 0:
            mine[:2] = self._asked(), self._now() - self._kept >= keep_every
        stop, keep, paces = self._group.host_sum(mine) if processes > 1 else mine
        decision = Decision(bool(stop), bool(stop or keep))
        if decision.keep:
            self._kept = self._now()
        return decision, float(paces) / 1e9 / processes
