"""Counters and timer of an epoch, on devices that may still be computing."""

import math
import time
from collections import deque
from typing import NamedTuple, SupportsFloat

from scalestudy.data.samples import Call
from scalestudy.engines.base import DeviceMark
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.step_times import StepTimes


class CallInFlight(NamedTuple):
    """A call that was given to a device: its begin and end there, its steps, and the wait for its input."""

    began: DeviceMark
    ended: DeviceMark
    steps: int
    wait: float


IN_FLIGHT = 2
"""Calls that a device is given in advance. More would only hold the memory of more batches."""


class EpochCounters:
    """Counters and timer of one epoch on this process. The timer is paused between `stop` and `start`.

    Calls that return before they are computed are timed by the device. Input then counts as awaited only as
    far as the device was idle meanwhile.

    Attributes:
        step: Steps done.
        samples: Samples processed by all workers together.
        loss: Sum of the losses of this process's workers, over all calls before the last `stop`.
        waited: Part of `seconds` spent waiting for input.

    Args:
        times: Records the duration of every call.
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
        self._in_flight: deque[CallInFlight] = deque()
        self._before: DeviceMark | None = None

    @property
    def seconds(self) -> float:
        """Training time so far."""
        return self._spent + (0.0 if self._started is None else time.perf_counter() - self._started)

    def start(self) -> None:
        """Start the timer. The next input is requested now."""
        self._started = self._asked = time.perf_counter()
        self._waited_before = self.waited

    def ask(self) -> None:
        """Mark the moment at which the next input is requested."""
        self._asked = now = time.perf_counter()
        self._account(now)

    def arrived(self) -> None:
        """Mark the moment at which the requested input arrives."""
        self._arrived = now = time.perf_counter()
        self._wait = now - self._asked

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
        self._steps = call[0].steps
        if began is None or ended is None:
            self.waited += self._wait
        else:
            self._arrived = None
            self._in_flight.append(CallInFlight(began, ended, self._steps, self._wait))
            while len(self._in_flight) > IN_FLIGHT:
                self._await()
        self.step += call[0].steps
        self.samples += call[0].steps * call[0].total

    def stop(self, clock: PhaseClock) -> None:
        """Wait for the device and stop the timer."""
        self._account(time.perf_counter())
        while self._in_flight:
            self._await()
        self._before = None
        for losses in self._pending:
            self.loss += float(losses)
        self._pending.clear()
        spent, waited = self.seconds - self._spent, self.waited - self._waited_before
        self._spent += spent
        self._started = None
        clock.add("input", waited)
        clock.add("steps", spent - waited)

    def _await(self) -> None:
        """Wait for the earliest call in flight and record its duration, by the device's clock."""
        call = self._in_flight.popleft()
        call.ended.wait()
        idle = math.inf if self._before is None else call.began.seconds_since(self._before)
        waited = min(call.wait, max(idle, 0.0))
        spent = call.ended.seconds_since(call.began)
        if self._before is not None:
            spent = call.ended.seconds_since(self._before) - waited
        self.waited += waited
        if self._times is not None:
            self._times.add(call.steps, spent, waited)
        self._before = call.ended

    def _account(self, now: float) -> None:
        """Record the duration of the call whose input arrived last, once."""
        if self._times is not None and self._arrived is not None:
            self._times.add(self._steps, now - self._arrived, self._wait)
        self._arrived = None
