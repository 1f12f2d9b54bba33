"""Utilisation, energy, traffic and memory of the granted cores and GPUs while a run trains."""

import math
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scalestudy.hardware.counters import CpuEnergy, Network, storage_bytes
from scalestudy.hardware.devices import GpuLoad, Load
from scalestudy.store.records import GpuUse, NodeUse, ProcessUse

OF_PROCESS = ("cpu_seconds", "read_bytes", "written_bytes")
OF_NODE = ("sent_bytes", "received_bytes", "loopback_bytes", "cpu_joules")
PEAKS = 4
"""Number of leading fields of `DeviceUse` that are peaks; the other fields are sums."""


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

    def stretch(self, before: Load, after: Load, seconds: float) -> None:
        """Add the interval between two samples.

        Its utilisation is that of the later sample, which covers the time before it. Its power is the mean of
        both samples, so energy is integrated by the trapezoidal rule.
        """
        self._seconds += seconds
        for load in (before, after):
            self.memory, self.total = _most(self.memory, load.memory), _most(self.total, load.total)
        if after.busy is not None:
            self._busy += after.busy * seconds
            self._busy_seconds += seconds
        if after.traffic is not None:
            self._traffic += after.traffic * seconds
            self._traffic_seconds += seconds
        powers = [load.power for load in (before, after) if load.power is not None]
        if powers:
            self._drawn += sum(powers) / len(powers) * seconds
            self._drawn_seconds += seconds
        else:
            self._without_power += 1

    def window(self, first: Load, last: Load) -> None:
        """Add the energy of a whole window from its first and last sample."""
        self._windows += 1
        if first.energy is None or last.energy is None or last.energy < first.energy:
            return  # not reported, or the driver was reloaded
        self._with_counter += 1
        self._counted += last.energy - first.energy

    def row(self) -> list[float]:
        """Return all fields as `WIDTH` numbers."""
        return [float(getattr(self, field.name)) for field in fields(self)]

    def after(self, earlier: "DeviceUse") -> "DeviceUse":
        """Return the combined use of `earlier` and this one."""
        pairs = list(zip(earlier.row(), self.row(), strict=True))
        peaks = [_most(one, other) for one, other in pairs[:PEAKS]]
        return DeviceUse(*peaks, *(one + other for one, other in pairs[PEAKS:]))

    def record(self, rank: int, device: int) -> GpuUse:
        """Return the record of this GPU."""
        joules, source = self._energy()
        watts = self._drawn / self._drawn_seconds if self._drawn_seconds else None
        if joules is not None and self._seconds:
            watts = joules / self._seconds
        return GpuUse(
            rank=rank,
            device=device,
            watts=watts,
            joules=joules,
            energy_from=source,
            percent=self._busy / self._busy_seconds if self._busy_seconds else None,
            memory_percent=self._traffic / self._traffic_seconds if self._traffic_seconds else None,
            memory_bytes=_whole(self.memory),
            memory_total_bytes=_whole(self.total),
            allocated_bytes=_whole(self.allocated),
            reserved_bytes=_whole(self.reserved),
        )

    def _energy(self) -> tuple[float | None, Literal["counter", "power"] | None]:
        if self._windows and self._with_counter == self._windows:
            return self._counted, "counter"
        return (self._drawn, "power") if self._drawn_seconds and not self._without_power else (None, None)


WIDTH = len(fields(DeviceUse))
"""Length of `DeviceUse.row`."""
_SUMS = ("core_seconds", *OF_PROCESS, *OF_NODE)
"""Granted cores times seconds, then the counters."""


@dataclass(frozen=True)
class Usage:
    """Resources used by one process. Unknown quantities are NaN.

    Attributes:
        node: Whether it also measured its node.
        peak_memory: Peak resident bytes of this process, without earlier ones.
        sums: Values of `_SUMS`.
        gpus: Use of its GPUs.
    """

    node: bool
    peak_memory: float
    sums: NDArray[np.float64]
    gpus: tuple[DeviceUse, ...]

    @classmethod
    def of(cls, row: Sequence[float]) -> "Usage":
        """Create the usage from a result of `row`."""
        node, peak_memory, *rest = map(float, row)
        starts = range(len(_SUMS), len(rest), WIDTH)
        gpus = tuple(DeviceUse(*rest[start : start + WIDTH]) for start in starts)
        return cls(bool(node), peak_memory, np.array(rest[: len(_SUMS)]), gpus)

    def row(self) -> list[float]:
        """Return all values as numbers. The length depends only on the number of GPUs."""
        gpus = [number for gpu in self.gpus for number in gpu.row()]
        return [float(self.node), self.peak_memory, *self.sums.tolist(), *gpus]

    def after(self, earlier: "Usage") -> "Usage":
        """Return this usage plus that of the `earlier` process, which must have the same number of GPUs."""
        gpus = tuple(gpu.after(before) for before, gpu in zip(earlier.gpus, self.gpus, strict=True))
        return Usage(self.node, self.peak_memory, self.sums + earlier.sums, gpus)

    @property
    def cpu_percent(self) -> float:
        """Mean share of the granted cores that was used, in per cent; 0 if no time has passed."""
        granted, used = self.sums[0], self.sums[1]
        return float(100 * used / granted) if granted else 0.0

    def process_use(self, rank: int) -> ProcessUse:
        """Return the record of the process."""
        return ProcessUse.model_validate({"rank": rank, **self._known(OF_PROCESS)})

    def node_use(self, rank: int) -> NodeUse:
        """Return the record of its node."""
        return NodeUse.model_validate({"rank": rank, **self._known(OF_NODE)})

    def gpu_uses(self, rank: int) -> list[GpuUse]:
        """Return the records of its GPUs."""
        return [gpu.record(rank, device) for device, gpu in enumerate(self.gpus)]

    def _known(self, names: Sequence[str]) -> dict[str, float | None]:
        known = {
            name: round(value) if name.endswith("bytes") else value
            for name, value in zip(_SUMS, self.sums.tolist(), strict=True)
            if not math.isnan(value)
        }
        return {name: known.get(name) for name in names}


def _most(one: float, other: float | None) -> float:
    known = [value for value in (one, other) if value is not None and not math.isnan(value)]
    return max(known, default=math.nan)


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else round(value)


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
