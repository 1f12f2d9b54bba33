"""A clock of phases: where the time of a run went."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from scalestudy.measure.hang_detection import Heartbeat


class PhaseClock:
    """Adds up wall-clock seconds by phase. Phases nest: the inner one's time is not the outer's.

    `started` is the Unix time at which the process began: until now it was in "start-up". `heart` is told of
    every phase.
    """

    def __init__(self, started: float | None = None) -> None:
        self.heart = Heartbeat()
        self.started = time.time() if started is None else started
        self._origin = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self._inner: list[float] = []
        if started is not None:
            before = max(0.0, time.time() - started)
            self.seconds["start-up"] = before
            self._origin -= before

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the block's time as `name`."""
        start = time.perf_counter()
        self._inner.append(0.0)
        outer = self.heart.last.phase
        self.heart.enter(name)
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent - self._inner.pop()
            if self._inner:
                self._inner[-1] += spent
            self.heart.enter(outer)

    def add(self, name: str, seconds: float) -> None:
        """Count `seconds`, measured elsewhere, as `name`."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        if self._inner:
            self._inner[-1] += seconds

    def resume(self, phases: dict[str, float], wall: float) -> None:
        """Go on from what an earlier process counted: its `phases()` and its `wall`."""
        self._origin -= wall
        for name, seconds in phases.items():
            if name != "other":
                self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @property
    def wall(self) -> float:
        """Seconds since the process began, those of the processes it goes on from included."""
        return time.perf_counter() - self._origin

    def phases(self) -> dict[str, float]:
        """Seconds by phase; "other" is what no phase claimed. They add up to the wall time."""
        other = self.wall - sum(self.seconds.values())
        return {**self.seconds, "other": max(0.0, other)}
