"""Utilisation, energy, traffic and memory of the granted cores and GPUs while a run trains."""

import math
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scalestudy.hardware.counters import CpuEnergy, Network, storage_bytes
from scalestudy.hardware.nvml import GpuLoad, Load
from scalestudy.measure.usage import OF_NODE, OF_PROCESS, DeviceUse, Usage

EVERY = 1.0
"""Seconds between two samples of the GPUs, and of counters that wrap."""
ROOT = Path("/")
"""The directory that contains `proc` and `sys`."""


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes, including shared pages of mapped files."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Counters:
    """Adds up the increments of counters in each window. Unknown increments are NaN, and so are their sums.

    If `node`, the counters of the node are included. If `needs_looks`, `glance` must be called regularly,
    because a counter wraps.
    """

    def __init__(self, node: bool, root: Path = Path("/")) -> None:
        self._root = root
        self._energy = CpuEnergy(root / "sys/class/powercap") if node else None
        self._network = Network(root) if node else None
        self.needs_looks = self._energy is not None and not self._energy.reason
        self._totals = np.zeros(len(OF_PROCESS) + len(OF_NODE))
        self._first = self._look()

    def open(self) -> None:
        """Begin a window."""
        self._first = self._look()

    def close(self) -> None:
        """End the window. A counter that decreased was reset meanwhile, so its increment is unknown."""
        gone = self._look() - self._first
        self._totals += np.where(gone < 0, math.nan, gone)

    def glance(self) -> None:
        """Read the counter that wraps, within a window."""
        if self._energy:
            self._energy.look()

    def totals(self) -> NDArray[np.float64]:
        """Return the increments of `OF_PROCESS` and `OF_NODE` in all windows so far."""
        return self._totals.copy()

    def reasons(self) -> dict[str, str]:
        """Return the unknown quantities with reasons."""
        reasons = {}
        if self._energy and self._energy.reason:
            reasons["cpu_joules"] = self._energy.reason
        if storage_bytes(self._root).read is None:
            reasons["read_bytes"] = "/proc/self/io cannot be read"
        if self._network and self._network.look().sent is None:
            reasons["network_sent_bytes"] = "/proc/self/net/dev, or a port of InfiniBand, cannot be read"
        return reasons

    def _look(self) -> NDArray[np.float64]:
        values: list[float | None] = [time.process_time(), *storage_bytes(self._root)]
        if self._network and self._energy:
            values += [*self._network.look(), self._energy.look()]
        else:
            values += [None] * len(OF_NODE)
        return np.array([math.nan if value is None else float(value) for value in values])


class Utilisation:
    """Measures this process's cores and GPUs in windows, each a `with` block of this object.

    GPUs are sampled at the start of a window, every `EVERY` seconds, and at its end, so even a very short
    window is measured. The sampler thread is started only for GPUs or a counter that wraps.

    `cpus` is the number of granted cores. If `node`, the network and CPU energy of the node are measured as
    well. `memory` returns what `Engine.gpu_memory` does. `whole` is False if the use of an earlier process of
    the run is unknown.
    """

    def __init__(
        self,
        cpus: int,
        gpus: Sequence[str],
        *,
        node: bool = False,
        memory: Callable[[], Sequence[tuple[int | None, int | None]]] = list,
    ) -> None:
        self._cpus, self._node, self._names, self._memory = cpus, node, tuple(gpus), memory
        self._counters = Counters(node, ROOT)
        self._core_seconds = 0.0
        self._load = GpuLoad(gpus)
        self._uses = [DeviceUse() for _ in gpus]
        self._last: list[Load] = []
        self._samples = bool(gpus) or self._counters.needs_looks
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._sampler: threading.Thread | None = None
        self._earlier: Usage | None = None
        self.whole = True

    def __enter__(self) -> "Utilisation":
        with self._lock:
            self._begin()
        if self._samples and self._sampler is None:
            self._sampler = threading.Thread(target=self._sample, name="utilisation", daemon=True)
            self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._end()

    def resume(self, row: Sequence[float]) -> None:
        """Add the usage `row` of an earlier process; without one, or for other GPUs, set `whole` to False."""
        earlier = Usage.of(row) if row else None
        if earlier is None or len(earlier.gpus) != len(self._uses):
            self.whole = False
        else:
            self._earlier = earlier

    def usage(self) -> Usage:
        """Return the usage so far, including an open window and earlier processes."""
        with self._lock:
            if self._open.is_set():
                self._end()
                self._begin()
            for use, peaks in zip(self._uses, self._memory(), strict=False):
                use.allocated, use.reserved = (math.nan if peak is None else float(peak) for peak in peaks)
            sums = np.array([self._core_seconds, *self._counters.totals()])
            gpus = tuple(DeviceUse(*use.row()) for use in self._uses)
        usage = Usage(self._node, float(peak_memory()), sums, gpus)
        return usage.after(self._earlier) if self._earlier else usage

    def gpu_percent(self) -> float | None:
        """Return the mean utilisation of the GPUs at the last sample in per cent, or None if unknown."""
        with self._lock:
            seen = [load.busy for load in self._last if load.busy is not None] if self._uses else []
        return sum(seen) / len(seen) if seen else None

    def reasons(self) -> dict[str, str]:
        """Return the quantities that cannot be measured with reasons."""
        reasons = self._counters.reasons()
        if any(name.startswith("MIG") for name in self._names):
            reasons["gpu_joules"] = "NVML reports no utilisation and no energy of MIG instances"
        return reasons

    def _begin(self) -> None:
        self._counters.open()
        self._began = time.perf_counter()
        if self._uses:
            self._first = self._last = self._load.look()
            self._looked = time.perf_counter()
        self._open.set()

    def _end(self) -> None:
        self._counters.close()
        self._core_seconds += (time.perf_counter() - self._began) * self._cpus
        self._open.clear()
        if self._uses:
            self._look()
            for use, first, last in zip(self._uses, self._first, self._last, strict=True):
                use.window(first, last)

    def _look(self) -> None:
        loads, now = self._load.look(), time.perf_counter()
        for use, before, after in zip(self._uses, self._last, loads, strict=True):
            use.stretch(before, after, now - self._looked)
        self._last, self._looked = loads, now

    def _sample(self) -> None:
        while True:
            self._open.wait()
            time.sleep(EVERY)
            with self._lock:
                if self._open.is_set():
                    self._counters.glance()
                    if self._uses and time.perf_counter() - self._looked >= EVERY / 2:
                        self._look()
