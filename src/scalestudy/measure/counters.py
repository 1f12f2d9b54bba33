"""What a process and its node have counted within windows: cores, storage, network, energy."""

import math
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scalestudy.hardware import process_io
from scalestudy.hardware.cpu_energy import CpuEnergy
from scalestudy.hardware.traffic import Network

OF_PROCESS = ("cpu_seconds", "read_bytes", "written_bytes")
OF_NODE = ("sent_bytes", "received_bytes", "loopback_bytes", "cpu_joules")


class Counters:
    """Adds up, window by window, how far each counter went. Unknown is NaN, and stays so in every sum.

    Args:
        node: Whether this process tells of its node too.
        root: Where `/proc` and `/sys` are.

    Attributes:
        needs_looks: Whether a counter may wrap unless `glance` is called now and then.
    """

    def __init__(self, node: bool, root: Path = Path("/")) -> None:
        self._root = root
        self._energy = CpuEnergy(root / "sys/class/powercap") if node else None
        self._network = Network(root) if node else None
        self.needs_looks = self._energy is not None and not self._energy.reason
        self._totals = np.zeros(len(OF_PROCESS) + len(OF_NODE))
        self._first = self._look()

    def open(self) -> None:
        """A window begins."""
        self._first = self._look()

    def close(self) -> None:
        """It ends. A counter that went back was reset meanwhile: it is unknown."""
        gone = self._look() - self._first
        self._totals += np.where(gone < 0, math.nan, gone)

    def glance(self) -> None:
        """See what wraps, within a window."""
        if self._energy:
            self._energy.look()

    def totals(self) -> NDArray[np.float64]:
        """How far each of `OF_PROCESS` and `OF_NODE` went in the windows so far."""
        return self._totals.copy()

    def reasons(self) -> dict[str, str]:
        """What is unknown, and why."""
        found = {}
        if self._energy and self._energy.reason:
            found["cpu_joules"] = self._energy.reason
        if process_io.look(self._root).read is None:
            found["read_bytes"] = "/proc/self/io cannot be read"
        if self._network and self._network.look().sent is None:
            found["network_sent_bytes"] = "/proc/self/net/dev, or a port of InfiniBand, cannot be read"
        return found

    def _look(self) -> NDArray[np.float64]:
        told: list[float | None] = [time.process_time(), *process_io.look(self._root)]
        if self._network and self._energy:
            told += [*self._network.look(), self._energy.look()]
        else:
            told += [None] * len(OF_NODE)
        return np.array([math.nan if each is None else float(each) for each in told])
