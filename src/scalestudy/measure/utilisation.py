"""How busy the granted cores and GPUs are, and the most memory a process held."""

import resource
import sys
import threading
import time

import psutil

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
        gpus: Indices of the GPUs to look at, as NVML counts them.
    """

    def __init__(self, cpus: int, gpus: list[int]) -> None:
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
        import pynvml

        try:
            pynvml.nvmlInit()
            handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in self._gpus]
            while not self._stop.wait(EVERY):
                rates = [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu for handle in handles]
                self._samples.append(sum(rates) / len(rates))
        except pynvml.NVMLError:
            return  # utilisation is told where the driver tells it, and never stops a run
