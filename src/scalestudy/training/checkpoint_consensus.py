"""When to stop or to write a checkpoint, in agreement among all ranks."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalestudy.engines.group import Group

ASK_EVERY = 5.0
"""Seconds between two checks for a stop request, if several processes must agree."""
LOOK_EVERY = 1.0
"""The same for a single process, which only checks whether a file exists."""
KEEP_EVERY = 60.0
"""Minimum seconds between two checkpoints after epochs, and from the start to the first."""
KEEP_WITHIN = 600.0
"""Seconds after which a checkpoint is also written within an epoch."""


class Agreed(NamedTuple):
    """The decision of all ranks: `stop` (after a checkpoint), or only `keep` a checkpoint."""

    stop: bool
    keep: bool


class CheckpointConsensus:
    """Makes all ranks stop or write a checkpoint after the same call.

    Ranks agree by a sum over processes. Since this sum takes time, they also agree on the number of calls
    until the next one, from the measured seconds per call. `asked` returns whether to stop; only rank 0's
    answer counts.
    """

    def __init__(
        self,
        asked: Callable[[], bool],
        group: Group,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asked = asked
        self._group = group
        self._now = now
        self._kept = self._checked = now()
        self._calls = 0
        self._until = 1

    def due(self) -> bool:
        """Count a call. Return whether `within_epoch` must be called now; the same on every rank."""
        self._calls += 1
        if self._calls >= self._until:
            return True
        # Several ranks must not decide by their own clocks.
        alone = self._group.size == 1
        return alone and self._now() - self._checked >= LOOK_EVERY

    def within_epoch(self) -> Agreed:
        """Decide between two calls. Every rank must call this when `due` returns True."""
        pace = (self._now() - self._checked) / max(1, self._calls)
        decision, pace = self._decide(KEEP_WITHIN, pace)
        # Of all ranks, so that they count to the same call.
        self._calls = 0
        self._until = max(1, int(ASK_EVERY / max(pace, 1e-9)))
        self._checked = self._now()
        return decision

    def after_epoch(self) -> Agreed:
        """Decide between two epochs. Every rank must call this."""
        decision, _ = self._decide(KEEP_EVERY, 0.0)
        return decision

    def _decide(self, keep_every: float, pace: float) -> tuple[Agreed, float]:
        """Return the decision, and the mean of the paces of all ranks in seconds per call."""
        processes = self._group.size
        # Whole nanoseconds below 2^53 are summed exactly, so every rank gets the same sum in any order.
        mine = np.array([0, 0, round(pace * 1e9)], np.float64)
        if self._group.rank == 0:
            mine[:2] = self._asked(), self._now() - self._kept >= keep_every
        if processes > 1:
            mine = self._group.host_sum(mine)
        stop, keep, paces = mine
        decision = Agreed(bool(stop), bool(stop or keep))
        if decision.keep:
            self._kept = self._now()
        return decision, float(paces) / 1e9 / processes
