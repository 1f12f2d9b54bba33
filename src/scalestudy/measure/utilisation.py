"""How busy the granted cores and GPUs are, what GPUs draw, and the most memory a process held."""

import resource
import sys
import threading
import time
from collections.abc import Sequence

import psutil

from scalestudy.machine.gpu_load import GpuLoad, Load
from scalestudy.measure.gpu_use import DeviceUse

EVERY = 1.0
"""Seconds between two looks at the GPUs."""


def peak_memory() -> int:
    """Peak resident memory of this process in bytes, the shared pages of mapped files included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Utilisation:
    """What this process's cores and GPUs do in windows, each a `with` of it; one sampler for all of them.

    GPUs are looked at when a window begins, then every `EVERY` seconds, and when it ends, so that the
    shortest window counts. No sampler is started without GPUs.

    Args:
        cpus: Number of cores granted.
        gpus: Names of the GPUs to look at.
    """

    def __init__(self, cpus: int, gpus: Sequence[str]) -> None:
        self._cpus = cpus
        self._process = psutil.Process()
        self._cpu_seconds = self._wall = 0.0
        self._load = GpuLoad(gpus)
        self._uses = [DeviceUse() for _ in gpus]
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._sampler: threading.Thread | None = None

    def __enter__(self) -> "Utilisation":
        self._start = (self._used(), time.perf_counter())
        if self._uses:
            with self._lock:
                self._first = self._last = self._load.look()
                self._looked = time.perf_counter()
                self._open.set()
            if self._sampler is None:
                self._sampler = threading.Thread(target=self._sample, name="utilisation", daemon=True)
                self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._cpu_seconds += self._used() - self._start[0]
        self._wall += time.perf_counter() - self._start[1]
        if self._uses:
            with self._lock:
                self._look()
                self._open.clear()
                for use, first, last in zip(self._uses, self._first, self._last, strict=True):
                    use.window(first, last)

    def cpu_percent(self) -> float:
        """Mean share of the granted cores that was used, in per cent."""
        return 100 * self._cpu_seconds / (self._wall * self._cpus) if self._wall else 0.0

    def gpus(self) -> list[list[float]]:
        """What each GPU did, as `DeviceUse.row` gives it, in the order of their names."""
        with self._lock:
            return [use.row() for use in self._uses]

    def _used(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def _look(self) -> None:
        loads, now = self._load.look(), time.perf_counter()
        self._stretch(loads, now - self._looked)
        self._last, self._looked = loads, now

    def _stretch(self, loads: Sequence[Load], seconds: float) -> None:
        for use, before, after in zip(self._uses, self._last, loads, strict=True):
            use.stretch(before, after, seconds)

    def _sample(self) -> None:
        while True:
            self._open.wait()
            time.sleep(EVERY)
            with self._lock:
                if self._open.is_set() and time.perf_counter() - self._looked >= EVERY / 2:
                    self._look()
