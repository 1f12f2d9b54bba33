"""The times of a run: a clock by phase."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from scalestudy.measure.heartbeat import Heartbeat


class PhaseClock:
    """Adds up wall-clock seconds by phase. Phases nest; an inner phase's time does not count as the outer's.

    `started` is the Unix time at which the process started; the time since then counts as "start-up". Every
    change of phase is marked in `heartbeat`.
    """

    def __init__(self, started: float | None = None) -> None:
        self.heartbeat = Heartbeat()
        now = time.time()
        self.started = now
        # A monotonic clock: the time of day may be set while a run trains.
        self._origin = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self._inner: list[float] = []
        if started is not None:
            self.started = started
            before = max(0.0, now - started)
            self.seconds["start-up"] = before
            self._origin -= before

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of the block as phase `name`."""
        start = time.perf_counter()
        # Seconds of the phases inside of this one, which do not count as its own.
        self._inner.append(0.0)
        outer = self.heartbeat.last.phase
        # Each change counts as progress, so that the watchdog waits anew.
        self.heartbeat.enter(name)
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            inner = self._inner.pop()
            self._count(name, spent - inner)
            if self._inner:
                self._inner[-1] += spent
            self.heartbeat.enter(outer)

    def add(self, name: str, seconds: float) -> None:
        """Count `seconds`, measured by the caller, as phase `name`."""
        self._count(name, seconds)
        if self._inner:
            self._inner[-1] += seconds

    def _count(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def resume(self, phases: dict[str, float], wall: float) -> None:
        """Add the results of an earlier process: its `phases()` and its `wall`."""
        self._origin -= wall
        for name, seconds in phases.items():
            # "other" is what is left of the wall time, which `phases` computes afresh.
            if name != "other":
                self._count(name, seconds)

    @property
    def wall(self) -> float:
        """Seconds since the process started, plus those of the processes it continues."""
        return time.perf_counter() - self._origin

    def phases(self) -> dict[str, float]:
        """Return seconds by phase, which add up to the wall time; "other" is the time outside of phases."""
        other = self.wall - sum(self.seconds.values())
        return {**self.seconds, "other": max(0.0, other)}
