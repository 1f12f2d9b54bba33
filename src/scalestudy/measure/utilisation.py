"""How busy the granted cores and GPUs are, what they draw, move and hold while a run trains."""

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
"""Seconds between two looks at the GPUs, and at counters that wrap."""
ROOT = Path("/")
"""Where `/proc` and `/sys` are."""


def peak_memory() -> int:
    """Peak resident memory of this process in bytes, the shared pages of mapped files included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Counters:
    """Adds up, window by window, how far each counter went. Unknown is NaN, and stays so in every sum.

    With `node` it tells of the node too; `needs_looks` says that a counter wraps unless `glance` is called.
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
    """What this process's cores and GPUs do in windows, each a `with` of it; one sampler for all of them.

    GPUs are looked at when a window begins, then every `EVERY` seconds, and when it ends, so that the
    shortest window counts. No sampler is started without GPUs and without a counter that wraps.

    `cpus` is the number of cores granted; with `node` it tells of the node's network and processors' energy,
    too; `allocated` gives the most bytes of each GPU that the framework had given to tensors at once. `whole`
    says whether it knows of all earlier processes of the run.
    """

    def __init__(
        self, cpus: int, gpus: Sequence[str], *, node: bool = False,
        allocated: Callable[[], Sequence[int | None]] = list,
    ) -> None:  # fmt: skip
        self._cpus, self._node, self._names, self._allocated = cpus, node, tuple(gpus), allocated
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
        """Go on from an earlier process's `row`; where it gave none, or had other GPUs, that is lost."""
        earlier = Usage.of(row) if row else None
        if earlier is None or len(earlier.gpus) != len(self._uses):
            self.whole = False
        else:
            self._earlier = earlier

    def usage(self) -> Usage:
        """What was used so far, an open window and earlier processes included."""
        with self._lock:
            if self._open.is_set():
                self._end()
                self._begin()
            for use, most in zip(self._uses, self._allocated(), strict=False):
                use.allocated = math.nan if most is None else float(most)
            sums = np.array([self._core_seconds, *self._counters.totals()])
            gpus = tuple(DeviceUse(*use.row()) for use in self._uses)
        usage = Usage(self._node, float(peak_memory()), sums, gpus)
        return usage.after(self._earlier) if self._earlier else usage

    def gpu_percent(self) -> float | None:
        """Mean of what the GPUs did when they were last looked at; None where none tells."""
        with self._lock:
            seen = [load.busy for load in self._last if load.busy is not None] if self._uses else []
        return sum(seen) / len(seen) if seen else None

    def reasons(self) -> dict[str, str]:
        """What it cannot tell, and why."""
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
