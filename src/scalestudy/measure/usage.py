"""What a process used, as a row of numbers that all ranks can gather, and that a checkpoint keeps. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scalestudy.hardware.nvml import Load
from scalestudy.study.usage import GpuUse, NodeUse, ProcessUse

OF_PROCESS = ("cpu_seconds", "read_bytes", "written_bytes")
OF_NODE = ("sent_bytes", "received_bytes", "loopback_bytes", "cpu_joules")
PEAKS = 3
"""Fields of a `DeviceUse` that are peaks; the others add up."""


@dataclass
class DeviceUse:
    """One GPU over the windows in which it was watched. What it never told is NaN, and no zero.

    Attributes:
        memory: The most bytes that were in use.
        total: Bytes of memory that it has.
        allocated: The most bytes that the framework had given to tensors at once.
    """

    memory: float = math.nan
    total: float = math.nan
    allocated: float = math.nan
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
        """A stretch between two looks.

        Its utilisation is that of its end, which tells of the moment before. Its power is the mean of both
        ends, so that energy is integrated by the trapezoidal rule.
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
        """A whole window, by its first look and its last."""
        self._windows += 1
        if first.energy is None or last.energy is None or last.energy < first.energy:
            return  # not told; or the driver was loaded again
        self._with_counter += 1
        self._counted += last.energy - first.energy

    def row(self) -> list[float]:
        """All that it knows as `WIDTH` numbers."""
        return [float(getattr(self, field.name)) for field in fields(self)]

    def after(self, earlier: "DeviceUse") -> "DeviceUse":
        """The use of both stretches of time."""
        pairs = list(zip(earlier.row(), self.row(), strict=True))
        peaks = [_most(one, other) for one, other in pairs[:PEAKS]]
        return DeviceUse(*peaks, *(one + other for one, other in pairs[PEAKS:]))

    def record(self, rank: int, device: int) -> GpuUse:
        """The record of it."""
        joules, source = self._energy()
        watts = self._drawn / self._drawn_seconds if self._drawn_seconds else None
        if joules is not None and self._seconds:
            watts = joules / self._seconds
        return GpuUse(
            rank=rank, device=device, watts=watts, joules=joules, energy_from=source,
            percent=self._busy / self._busy_seconds if self._busy_seconds else None,
            memory_percent=self._traffic / self._traffic_seconds if self._traffic_seconds else None,
            memory_bytes=_whole(self.memory), memory_total_bytes=_whole(self.total),
            allocated_bytes=_whole(self.allocated),
        )  # fmt: skip

    def _energy(self) -> tuple[float | None, Literal["counter", "power"] | None]:
        if self._windows and self._with_counter == self._windows:
            return self._counted, "counter"
        return (self._drawn, "power") if self._drawn_seconds and not self._without_power else (None, None)


WIDTH = len(fields(DeviceUse))
"""Numbers of a `DeviceUse.row`."""
_SUMS = ("core_seconds", *OF_PROCESS, *OF_NODE)
"""Seconds of cores granted, then the counters."""


@dataclass(frozen=True)
class Usage:
    """What one process used. Unknown is NaN.

    Attributes:
        node: Whether it tells of its node.
        peak_memory: Bytes; not of earlier processes.
        sums: Of `_SUMS`.
        gpus: Its GPUs.
    """

    node: bool
    peak_memory: float
    sums: NDArray[np.float64]
    gpus: tuple[DeviceUse, ...]

    @classmethod
    def of(cls, row: Sequence[float]) -> "Usage":
        """What `row` gave."""
        node, peak_memory, *rest = map(float, row)
        starts = range(len(_SUMS), len(rest), WIDTH)
        gpus = tuple(DeviceUse(*rest[start : start + WIDTH]) for start in starts)
        return cls(bool(node), peak_memory, np.array(rest[: len(_SUMS)]), gpus)

    def row(self) -> list[float]:
        """It as numbers; as many on every rank that has as many GPUs."""
        gpus = [number for gpu in self.gpus for number in gpu.row()]
        return [float(self.node), self.peak_memory, *self.sums.tolist(), *gpus]

    def after(self, earlier: "Usage") -> "Usage":
        """This of a process that went on from `earlier`, which had as many GPUs."""
        gpus = tuple(gpu.after(before) for before, gpu in zip(earlier.gpus, self.gpus, strict=True))
        return Usage(self.node, self.peak_memory, self.sums + earlier.sums, gpus)

    @property
    def cpu_percent(self) -> float:
        """Mean share of the granted cores that was used, in per cent; 0 without any time."""
        granted, used = self.sums[0], self.sums[1]
        return float(100 * used / granted) if granted else 0.0

    def process_use(self, rank: int) -> ProcessUse:
        """The record of the process."""
        return ProcessUse.model_validate({"rank": rank, **self._known(OF_PROCESS)})

    def node_use(self, rank: int) -> NodeUse:
        """The record of its node."""
        return NodeUse.model_validate({"rank": rank, **self._known(OF_NODE)})

    def gpu_uses(self, rank: int) -> list[GpuUse]:
        """The records of its GPUs."""
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
