"""When a process of a diagnosis was where, for the trace."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from scalestudy.features.diagnose.blocks import Timed
from scalestudy.features.diagnose.twin import Mark
from scalestudy.measure.clock import PhaseClock


class Marks:
    """Stretches of this process's time, as the trace shows them."""

    def __init__(self, clock: PhaseClock) -> None:
        self._clock = clock
        self.found = [self._mark("start-up", "phase", time.perf_counter() - clock.wall, time.perf_counter())]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """The block is this phase."""
        begun = time.perf_counter()
        with self._clock.phase(name):
            yield
        self.found.append(self._mark(name, "phase", begun, time.perf_counter()))

    def block(self, name: str, times: Timed) -> None:
        """A block of steps, and its calls."""
        self.found.append(self._mark(name, "phase", times.begun[0], times.done))
        for asked, there, end in zip(times.begun, times.arrived, times.ended, strict=True):
            self.found.append(self._mark("input", "step", asked, there))
            self.found.append(self._mark("step", "step", there, end))

    def _mark(self, name: str, lane: str, begun: float, ended: float) -> Mark:
        return Mark.model_validate({"name": name, "lane": lane, "begun": begun, "ended": ended})
