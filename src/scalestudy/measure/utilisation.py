"""How busy the granted cores and GPUs are, what they draw, move and hold while a run trains."""

import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from scalestudy.hardware.gpu_load import GpuLoad, Load
from scalestudy.measure.counters import Counters
from scalestudy.measure.gpu_use import DeviceUse
from scalestudy.measure.usage import Usage

EVERY = 1.0
"""Seconds between two looks at the GPUs, and at counters that wrap."""
ROOT = Path("/")
"""Where `/proc` and `/sys` are."""


def peak_memory() -> int:
    """Peak resident memory of this process in bytes, the shared pages of mapped files included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Utilisation:
    """What this process's cores and GPUs do in windows, each a `with` of it; one sampler for all of them.

    GPUs are looked at when a window begins, then every `EVERY` seconds, and when it ends, so that the
    shortest window counts. No sampler is started without GPUs and without a counter that wraps.

    Args:
        cpus: Number of cores granted.
        gpus: Names of the GPUs to look at.
        node: Whether this process tells of its node too: its network, and its processors' energy.
        allocated: Gives the most bytes of each GPU that the framework had given to tensors at once, None
            where it does not say.

    Attributes:
        whole: Whether it knows of all earlier processes of the run, if there were any.
    """

    def __init__(
        self, cpus: int, gpus: Sequence[str], *, node: bool = False,
        allocated: Callable[[], Sequence[int | None]] = list,
    ) -> None:  # fmt: skip
        self._cpus, self._node, self._allocated = cpus, node, allocated
        self._counters = Counters(node, ROOT)
        self._core_seconds = 0.0
        self._load = GpuLoad(gpus)
        self._uses = [DeviceUse() for _ in gpus]
        self._names = tuple(gpus)
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
                use.allocated = float("nan") if most is None else float(most)
            sums = np.array([self._core_seconds, *self._counters.totals()])
            gpus = tuple(tuple(use.row()) for use in self._uses)
        own = Usage(self._node, float(peak_memory()), sums, gpus)
        return own.after(self._earlier) if self._earlier else own

    def gpu_percent(self) -> float | None:
        """Mean of what the GPUs did when they were last looked at; None where none tells."""
        with self._lock:
            seen = [load.busy for load in self._last if load.busy is not None] if self._uses else []
        return sum(seen) / len(seen) if seen else None

    def reasons(self) -> dict[str, str]:
        """What it cannot tell, and why."""
        found = self._counters.reasons()
        if any(name.startswith("MIG") for name in self._names):
            found["gpu_joules"] = "NVML tells no utilisation and no energy of MIG instances"
        return found

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
                if self._open.is_set():
                    self._counters.glance()
                    if self._uses and time.perf_counter() - self._looked >= EVERY / 2:
                        self._look()
