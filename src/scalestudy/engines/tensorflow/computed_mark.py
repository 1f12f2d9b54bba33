"""The moment at which a GPU has computed a call, for TensorFlow, which has no events of its own."""

import time
from concurrent.futures import Executor
from typing import Any


class ComputedMark:
    """A moment between two calls in the work of a device, by the host's clock; see `DeviceMark`.

    It is that of its creation, or later that at which the device has computed all calls before.

    Args:
        watcher: A single thread, which waits for one call after the other.
        losses: A tensor of the last call; None before the first. Its copy to the host waits for all work of
            the device at that time.
    """

    def __init__(self, watcher: Executor, losses: Any) -> None:
        self._made = time.perf_counter()
        self._computed = (
            None if losses is None else watcher.submit(_computed_at, losses)
        )

    def wait(self) -> None:
        """Wait until the device has computed all calls before."""
        if self._computed is not None:
            self._computed.result()

    def seconds_since(self, earlier: "ComputedMark") -> float:
        """Return the seconds from an earlier moment to this one; both are over."""
        return self.time - earlier.time

    @property
    def time(self) -> float:
        """The moment; waits until it is over."""
        computed = self._made if self._computed is None else self._computed.result()
        return max(self._made, computed)


def _computed_at(losses: Any) -> float:
    losses.numpy()
    return time.perf_counter()
