"""What the epoch under way has counted, and its stopwatch."""

import time
from dataclasses import dataclass
from typing import SupportsFloat

from scalestudy.data.loading.slices import Call
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.step_times import StepTimes


@dataclass(frozen=True)
class Moment:
    """Where a run is, for those who watch it."""

    epoch: int
    step: int
    steps: int
    samples: int
    seconds: float


class Tally:
    """Counts an epoch's calls on this process. Its time stands still between `stop` and `start`.

    Attributes:
        step: Steps done.
        samples: Samples of all workers together.
        loss: Sum of the losses of this process's workers, of all calls before the last `stop`.
        waited: Part of `seconds` spent waiting for input.

    Args:
        times: Is told of every call.
    """

    def __init__(
        self,
        step: int = 0,
        samples: int = 0,
        loss: float = 0.0,
        spent: float = 0.0,
        waited: float = 0.0,
        times: StepTimes | None = None,
    ) -> None:
        self.step, self.samples, self.loss, self.waited = step, samples, loss, waited
        self._spent = spent
        self._pending: list[SupportsFloat] = []
        self._times = times
        self._arrived: float | None = None
        self._started: float | None = None

    @property
    def seconds(self) -> float:
        """Training time so far."""
        return self._spent + (0.0 if self._started is None else time.perf_counter() - self._started)

    def start(self) -> None:
        """Let time run; the next input is asked for."""
        self._started = self._asked = time.perf_counter()
        self._waited_before = self.waited

    def ask(self) -> None:
        """The next input is asked for."""
        self._asked = now = time.perf_counter()
        self._account(now)

    def arrived(self) -> None:
        """It is here."""
        self._arrived = now = time.perf_counter()
        self._wait = now - self._asked
        self.waited += self._wait

    def count(self, call: Call, losses: SupportsFloat) -> None:
        """A call was given to the device, which will tell its sum of losses."""
        self._pending.append(losses)
        self._steps = call[0].steps
        self.step += call[0].steps
        self.samples += call[0].steps * call[0].total

    def stop(self, clock: PhaseClock) -> None:
        """Wait for the device, and stop the time."""
        self._account(time.perf_counter())
        for each in self._pending:
            self.loss += float(each)
        self._pending.clear()
        spent, waited = self.seconds - self._spent, self.waited - self._waited_before
        self._spent += spent
        self._started = None
        clock.add("input", waited)
        clock.add("steps", spent - waited)

    def _account(self, now: float) -> None:
        """Count the call whose input has arrived last, once."""
        if self._times is not None and self._arrived is not None:
            self._times.add(self._steps, now - self._arrived, self._wait)
        self._arrived = None
