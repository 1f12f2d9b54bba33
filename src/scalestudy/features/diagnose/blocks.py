"""Blocks of steps, timed: what a twin of a point measures."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import SupportsFloat

from scalestudy.data.loading.slices import Call
from scalestudy.measure.heartbeat import Heartbeat

WARM = 2
"""Calls before a block's time begins: the first may compile."""
FEWEST, MOST = 4, 400
"""Calls of a block."""
LEAD = 2
"""Calls that may be under way on a device before the host waits for the first: as many as are read ahead."""

Train = Callable[[Call], SupportsFloat]


@dataclass
class Timed:
    """Times of a block's calls, in seconds by `time.perf_counter`.

    Attributes:
        begun: When each call's input was asked for.
        arrived: When it was there.
        ended: When the next one's was asked for.
        done: When the device was done with the last.
    """

    begun: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    done: float = 0.0

    @property
    def seconds(self) -> float:
        """Of the whole block."""
        return self.done - self.begun[0]

    @property
    def waits(self) -> tuple[float, ...]:
        """Of each call: waiting for its input."""
        return tuple(there - asked for asked, there in zip(self.begun, self.arrived, strict=True))

    @property
    def calls(self) -> tuple[float, ...]:
        """Of each call: all but that."""
        return tuple(end - there for there, end in zip(self.arrived, self.ended, strict=True))


def timed(train: Train, calls: Iterator[Call], count: int, heart: Heartbeat) -> Timed:
    """Compute `count` calls, of which at most `LEAD` are under way on the device."""
    found, pending = Timed(), deque[SupportsFloat]()
    for _ in range(count):
        found.begun.append(time.perf_counter())
        call = next(calls)
        found.arrived.append(time.perf_counter())
        pending.append(train(call))
        del call  # its memory is free for the next
        if len(pending) > LEAD:
            float(pending.popleft())
        heart.enter("step")
        found.ended.append(time.perf_counter())
    for losses in pending:
        float(losses)
    found.done = time.perf_counter()
    return found


def warmed(train: Train, calls: Iterator[Call], heart: Heartbeat) -> float:
    """Compute the first calls; seconds of one of those after the first."""
    timed(train, calls, 1, heart)
    return timed(train, calls, WARM - 1, heart).seconds / (WARM - 1)


def length(seconds: float, each: float) -> int:
    """Calls of a block that is to last `seconds`, where one takes `each`."""
    return min(MOST, max(FEWEST, round(seconds / max(each, 1e-9))))
