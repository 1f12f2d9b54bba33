"""What a GPU did while it was watched: means, peaks and energy, from single looks. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from scalestudy.hardware.gpu_load import Load
from scalestudy.study.usage import GpuUse


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
        """All that it knows as `WIDTH` numbers, which `joined` adds up and `use_of` reads."""
        return [float(getattr(self, field.name)) for field in fields(self)]

    def use(self, rank: int, device: int) -> GpuUse:
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
"""Numbers of a `row`."""
PEAKS = 3
"""How many of them are peaks; the others add up."""


def joined(earlier: Sequence[float], later: Sequence[float]) -> list[float]:
    """The row of two stretches of time, of which each has given one."""
    peaks = [_most(one, other) for one, other in zip(earlier[:PEAKS], later[:PEAKS], strict=True)]
    return peaks + [one + other for one, other in zip(earlier[PEAKS:], later[PEAKS:], strict=True)]


def use_of(rank: int, device: int, row: Sequence[float]) -> GpuUse:
    """The record of what `DeviceUse.row` gave."""
    return DeviceUse(*map(float, row)).use(rank, device)


def _most(one: float, other: float | None) -> float:
    known = [each for each in (one, other) if each is not None and not math.isnan(each)]
    return max(known, default=math.nan)


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else int(value)
