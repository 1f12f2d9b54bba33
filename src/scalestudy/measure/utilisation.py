"""Utilisation, energy and memory of the granted cores and GPUs while a run trains."""

import math
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from scalestudy.hardware.gpu_load import GpuLoad, Load
from scalestudy.store.records import GpuUse

PEAKS = 4
"""Number of leading fields of `DeviceUse` that are peaks; the other fields are sums."""
EVERY = 1.0
"""Seconds between two samples of the GPUs."""


@dataclass
class DeviceUse:
    """The use of one GPU in the measured windows. Quantities that it does not report are NaN, not zero.

    Attributes:
        memory: Peak bytes in use.
        total: Bytes of memory of the GPU.
        allocated: Peak bytes that the framework allocated to tensors.
        reserved: Peak bytes that its allocator held, including unused blocks.
    """

    memory: float = math.nan
    total: float = math.nan
    allocated: float = math.nan
    reserved: float = math.nan
    _busy: float = 0.0
    _busy_seconds: float = 0.0
    _traffic: float = 0.0
    _traffic_seconds: float = 0.0
    _drawn: float = 0.0
    _drawn_seconds: float = 0.0
    _without_power: float = 0.0
    _counted: float = 0.0
    _windows: float = 0.0
    _with_counter: float = 0.0
    _seconds: float = 0.0

    def stretch(
        self,
        before: Load,
        after: Load,
        seconds: float,
    ) -> None:
        """Add the interval between two samples.

        Its utilisation is that of the later sample, which covers the time before it. Its power is the mean of
        both samples, so energy is integrated by the trapezoidal rule.
        """
        self._seconds += seconds
        powers = []
        for load in (before, after):
            self.memory = _most(self.memory, load.memory)
            self.total = _most(self.total, load.total)
            if load.power is not None:
                powers.append(load.power)
        if after.busy is not None:
            self._busy += after.busy * seconds
            self._busy_seconds += seconds
        if after.traffic is not None:
            self._traffic += after.traffic * seconds
            self._traffic_seconds += seconds
        if powers:
            mean = sum(powers) / len(powers)
            self._drawn += mean * seconds
            self._drawn_seconds += seconds
        else:
            self._without_power += 1

    def window(self, first: Load, last: Load) -> None:
        """Add the energy of a whole window from its first and last sample."""
        self._windows += 1
        # Not reported, or the driver was reloaded.
        if first.energy is None or last.energy is None or last.energy < first.energy:
            return
        self._with_counter += 1
        self._counted += last.energy - first.energy

    def row(self) -> list[float]:
        """Return all fields as numbers, in their order."""
        return [float(getattr(self, field.name)) for field in fields(self)]

    def after(self, earlier: "DeviceUse") -> "DeviceUse":
        """Return the combined use of `earlier` and this one."""
        combined = []
        pairs = zip(earlier.row(), self.row(), strict=True)
        for index, (before, now) in enumerate(pairs):
            if index < PEAKS:
                combined.append(_most(before, now))
            else:
                combined.append(before + now)
        return DeviceUse(*combined)

    def record(self, rank: int, device: int) -> GpuUse:
        """Return the record of this GPU."""
        joules, source = self._energy()
        watts = _mean(self._drawn, self._drawn_seconds)
        if joules is not None and self._seconds:
            # A counter sees every peak between two samples.
            watts = joules / self._seconds
        return GpuUse(
            rank=rank,
            device=device,
            watts=watts,
            joules=joules,
            energy_from=source,
            percent=_mean(self._busy, self._busy_seconds),
            memory_percent=_mean(self._traffic, self._traffic_seconds),
            memory_bytes=_whole(self.memory),
            memory_total_bytes=_whole(self.total),
            allocated_bytes=_whole(self.allocated),
            reserved_bytes=_whole(self.reserved),
        )

    def _energy(self) -> tuple[float | None, Literal["counter", "power"] | None]:
        # Of all windows or of none: a sum of both kinds would be neither.
        if self._windows and self._with_counter == self._windows:
            return self._counted, "counter"
        if self._drawn_seconds and not self._without_power:
            return self._drawn, "power"
        return None, None


@dataclass(frozen=True)
class Usage:
    """Resources used by one process.

    Attributes:
        node: Whether it is the first process of its node.
        peak_memory: Peak resident bytes of this process, without earlier ones.
        core_seconds: Granted cores times seconds.
        cpu_seconds: CPU time of all its threads.
        gpus: Use of its GPUs.
    """

    node: bool
    peak_memory: float
    core_seconds: float
    cpu_seconds: float
    gpus: tuple[DeviceUse, ...]

    @classmethod
    def of(cls, row: Sequence[float]) -> "Usage":
        """Create the usage from a result of `row`."""
        node, peak_memory, core_seconds, cpu_seconds, *rest = map(float, row)
        width = len(fields(DeviceUse))
        gpus = []
        for start in range(0, len(rest), width):
            of_gpu = rest[start : start + width]
            gpus.append(DeviceUse(*of_gpu))
        return cls(bool(node), peak_memory, core_seconds, cpu_seconds, tuple(gpus))

    def row(self) -> list[float]:
        """Return all values as numbers. The length depends only on the number of GPUs."""
        # Numbers of one length, since all ranks gather them in one array.
        row = [
            float(self.node),
            self.peak_memory,
            self.core_seconds,
            self.cpu_seconds,
        ]
        for gpu in self.gpus:
            row += gpu.row()
        return row

    def after(self, earlier: "Usage") -> "Usage":
        """Return this usage plus that of the `earlier` process, which must have the same number of GPUs."""
        gpus = []
        for before, gpu in zip(earlier.gpus, self.gpus, strict=True):
            gpus.append(gpu.after(before))
        return Usage(
            self.node,
            # The operating system counts a peak per process, and the earlier one has ended.
            self.peak_memory,
            self.core_seconds + earlier.core_seconds,
            self.cpu_seconds + earlier.cpu_seconds,
            tuple(gpus),
        )

    @property
    def cpu_percent(self) -> float:
        """Mean share of the granted cores that was used, in per cent; 0 if no time has passed."""
        if not self.core_seconds:
            return 0.0
        return 100 * self.cpu_seconds / self.core_seconds

    def gpu_uses(self, rank: int) -> list[GpuUse]:
        """Return the records of its GPUs."""
        return [gpu.record(rank, device) for device, gpu in enumerate(self.gpus)]


def _mean(total: float, seconds: float) -> float | None:
    """Return a mean over time; None if there was no time."""
    if not seconds:
        return None
    return total / seconds


def _known(value: int | None) -> float:
    """Return a value as a number; NaN if it is unknown."""
    if value is None:
        return math.nan
    return float(value)


def _most(one: float, other: float | None) -> float:
    """Return the larger value; NaN if both are unknown."""
    if other is None or math.isnan(other):
        return one
    if math.isnan(one):
        return other
    return max(one, other)


def _whole(value: float) -> int | None:
    if math.isnan(value):
        return None
    return round(value)


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes, including shared pages of mapped files."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":
        return peak
    # Linux counts in KiB.
    return peak * 1024


class Utilisation:
    """Measures this process's cores and GPUs in windows, each a `with` block of this object.

    GPUs are sampled at the start of a window, every `EVERY` seconds, and at its end, so even a very short
    window is measured. The sampler thread is started only for GPUs.

    `cpus` is the number of granted cores. `node` marks the first process of a node. `memory` returns what
    `Engine.gpu_memory` does. `whole` is False if the use of an earlier process of the run is unknown.
    """

    def __init__(
        self,
        cpus: int,
        gpus: Sequence[str],
        *,
        node: bool = False,
        memory: Callable[[], Sequence[tuple[int | None, int | None]]] = list,
    ) -> None:
        self._cpus = cpus
        self._node = node
        self._names = tuple(gpus)
        self._memory = memory
        self._core_seconds = self._cpu_seconds = 0.0
        self._load = GpuLoad(gpus)
        self._uses = [DeviceUse() for _ in gpus]
        self._last: list[Load] = []
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._sampler: threading.Thread | None = None
        self._earlier: Usage | None = None
        self.whole = True

    def __enter__(self) -> "Utilisation":
        with self._lock:
            self._begin()
        if self._uses and self._sampler is None:
            # A daemon: it never ends, and must not keep alive a process that does.
            self._sampler = threading.Thread(
                target=self._sample,
                name="utilisation",
                daemon=True,
            )
            self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._end()

    def resume(self, row: Sequence[float]) -> None:
        """Add the usage `row` of an earlier process; without one, or for other GPUs, set `whole` to False."""
        earlier = None
        if row:
            earlier = Usage.of(row)
        if earlier is None or len(earlier.gpus) != len(self._uses):
            self.whole = False
        else:
            self._earlier = earlier

    def usage(self) -> Usage:
        """Return the usage so far, including an open window and earlier processes."""
        with self._lock:
            # Closed and opened again, so that what it has used so far counts.
            if self._open.is_set():
                self._end()
                self._begin()
            # Not strict: an engine that reports no memory returns an empty list.
            for use, peaks in zip(self._uses, self._memory(), strict=False):
                allocated, reserved = peaks
                use.allocated = _known(allocated)
                use.reserved = _known(reserved)
            # Copies, since the sampler goes on adding to its own.
            copies = [DeviceUse(*use.row()) for use in self._uses]
            usage = Usage(
                node=self._node,
                peak_memory=float(peak_memory()),
                core_seconds=self._core_seconds,
                cpu_seconds=self._cpu_seconds,
                gpus=tuple(copies),
            )
        if self._earlier is None:
            return usage
        return usage.after(self._earlier)

    def gpu_percent(self) -> float | None:
        """Return the mean utilisation of the GPUs at the last sample in per cent, or None if unknown."""
        with self._lock:
            seen = [load.busy for load in self._last if load.busy is not None]
        if not seen:
            return None
        return sum(seen) / len(seen)

    def reasons(self) -> dict[str, str]:
        """Return the quantities that cannot be measured with reasons."""
        if any(name.startswith("MIG") for name in self._names):
            return {
                "gpu_joules": "NVML reports no utilisation and no energy of MIG instances"
            }
        return {}

    def _begin(self) -> None:
        self._began = time.perf_counter()
        self._cpu_began = time.process_time()
        if self._uses:
            self._first = self._load.look()
            self._last = self._first
            self._looked = time.perf_counter()
        self._open.set()

    def _end(self) -> None:
        self._cpu_seconds += time.process_time() - self._cpu_began
        seconds = time.perf_counter() - self._began
        self._core_seconds += seconds * self._cpus
        self._open.clear()
        if self._uses:
            self._look()
            windows = zip(self._uses, self._first, self._last, strict=True)
            for use, first, last in windows:
                use.window(first, last)

    def _look(self) -> None:
        loads = self._load.look()
        now = time.perf_counter()
        seconds = now - self._looked
        for use, before, after in zip(self._uses, self._last, loads, strict=True):
            use.stretch(before, after, seconds)
        self._last = loads
        self._looked = now

    def _sample(self) -> None:
        while True:
            self._open.wait()
            time.sleep(EVERY)
            with self._lock:
                # A window that began meanwhile has a sample of its start already.
                since = time.perf_counter() - self._looked
                if self._open.is_set() and since >= EVERY / 2:
                    self._look()
