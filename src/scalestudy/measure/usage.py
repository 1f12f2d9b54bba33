"""Resources used by a process, convertible to a row of numbers that ranks gather and checkpoints store."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scalestudy.hardware.nvml import Load
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
        sums = dict(zip(_SUMS, self.sums.tolist(), strict=True))
        return {
            name: _whole(sums[name])
            if name.endswith("bytes")
            else None
            if math.isnan(sums[name])
            else sums[name]
            for name in names
        }


def _most(one: float, other: float | None) -> float:
    known = [value for value in (one, other) if value is not None and not math.isnan(value)]
    return max(known, default=math.nan)


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else round(value)
