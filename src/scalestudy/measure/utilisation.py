"""How busy the granted cores and GPUs are, and the most memory a process held."""

import resource
import sys
import threading
import time
from collections.abc import Sequence

import psutil

from scalestudy.machine.gpu_load import GpuLoad

EVERY = 1.0
"""Seconds between two looks at the GPUs."""


def peak_memory() -> int:
    """Peak resident memory of this process in bytes, the shared pages of mapped files included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Utilisation:
    """Mean utilisation of this process's cores and GPUs while it is switched on.

    Args:
        cpus: Number of cores granted.
        gpus: UUIDs of the GPUs to look at.
    """

    def __init__(self, cpus: int, gpus: Sequence[str]) -> None:
        self._cpus, self._gpus = cpus, gpus
        self._process = psutil.Process()
        self._cpu_seconds = self._wall = 0.0
        self._samples: list[float] = []

    def __enter__(self) -> "Utilisation":
        self._start = (self._used(), time.perf_counter())
        self._stop = threading.Event()
        self._thread = None
        if self._gpus:
            self._thread = threading.Thread(target=self._watch, name="utilisation", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._cpu_seconds += self._used() - self._start[0]
        self._wall += time.perf_counter() - self._start[1]

    def cpu_percent(self) -> float:
        """Mean share of the granted cores that was used, in per cent."""
        return 100 * self._cpu_seconds / (self._wall * self._cpus) if self._wall else 0.0

    def gpu_percent(self) -> float | None:
        """Mean utilisation of the GPUs in per cent, or None without a GPU."""
        return sum(self._samples) / len(self._samples) if self._samples else None

    def _used(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def _watch(self) -> None:
        load = GpuLoad(self._gpus)  # told where the driver tells it; a device that it does not is left out
        while not self._stop.wait(EVERY):
            percent = load.percent()
            if percent:
                self._samples.append(sum(percent) / len(percent))
