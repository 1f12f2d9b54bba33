"""Counters and timer of an epoch on one process."""

import math
import time
from collections import deque
from typing import NamedTuple, SupportsFloat

from scalestudy.data.samples import Call
from scalestudy.engines.interface import DeviceMark
from scalestudy.measure.clock import PhaseClock

IN_FLIGHT = 2
"""Calls that a device is given in advance. More would only hold the memory of more batches."""


class CallInFlight(NamedTuple):
    """A call that was given to a device: its begin and end there, and the wait for its input."""

    began: DeviceMark
    ended: DeviceMark
    wait: float


class EpochCounters:
    """Counters and timer of one epoch on this process. The timer is paused between `stop` and `start`.

    Calls that return before they are computed are timed by the device. Input then counts as awaited only as
    far as the device was idle meanwhile.

    Attributes:
        step: Steps done.
        samples: Samples processed by all workers together.
        loss: Sum of the losses of this process's workers, over all calls before the last `stop`.
        waited: Part of `seconds` spent waiting for input.
    """

    def __init__(
        self,
        step: int = 0,
        samples: int = 0,
        loss: float = 0.0,
        spent: float = 0.0,
        waited: float = 0.0,
    ) -> None:
        self.step = step
        self.samples = samples
        self.loss = loss
        self.waited = waited
        self._spent = spent
        self._pending: list[SupportsFloat] = []
        self._started: float | None = None
        self._asked = 0.0
        self._wait = 0.0
        self._waited_before = waited
        self._in_flight: deque[CallInFlight] = deque()
        self._before: DeviceMark | None = None

    @property
    def seconds(self) -> float:
        """Training time so far."""
        if self._started is None:
            return self._spent
        return self._spent + time.perf_counter() - self._started

    def start(self) -> None:
        """Start the timer. The next input is requested now."""
        self._started = self._asked = time.perf_counter()
        self._waited_before = self.waited

    def ask(self) -> None:
        """Mark the moment at which the next input is requested."""
        self._asked = time.perf_counter()

    def arrived(self) -> None:
        """Mark the moment at which the requested input arrives."""
        self._wait = time.perf_counter() - self._asked

    def count(
        self,
        call: Call,
        losses: SupportsFloat,
        began: DeviceMark | None = None,
        ended: DeviceMark | None = None,
    ) -> None:
        """Count a call that was given to the device; `losses` is converted to a number only in `stop`.

        `began` and `ended` mark its place in the work of the device, if it may still be computing. Waits
        until at most `IN_FLIGHT` calls are.
        """
        self._pending.append(losses)
        if began is None or ended is None:
            self.waited += self._wait
        else:
            self._in_flight.append(CallInFlight(began, ended, self._wait))
            while len(self._in_flight) > IN_FLIGHT:
                self._await()
        self.step += call[0].steps
        self.samples += call[0].steps * call[0].total

    def stop(self, clock: PhaseClock) -> None:
        """Wait for the device and stop the timer."""
        while self._in_flight:
            self._await()
        self._before = None
        for losses in self._pending:
            self.loss += float(losses)
        self._pending.clear()
        spent = self.seconds - self._spent
        waited = self.waited - self._waited_before
        self._spent += spent
        self._started = None
        clock.add("input", waited)
        clock.add("steps", spent - waited)

    def _await(self) -> None:
        """Wait for the earliest call in flight, and count the wait for its input by the device's clock."""
        call = self._in_flight.popleft()
        call.ended.wait()
        # The host may wait for input while the device computes earlier calls. Only as long as the device
        # then had nothing to do, the input was missing.
        idle = math.inf
        if self._before is not None:
            idle = call.began.seconds_since(self._before)
        self.waited += min(call.wait, max(idle, 0.0))
        self._before = call.ended
