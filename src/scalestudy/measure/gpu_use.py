"""What a GPU did while it was watched: means, peaks and energy, from single looks. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.machine.gpu_load import Load
from scalestudy.study.usage import GpuUse

_SOURCES = (None, "counter", "power")
WIDTH = 6
"""Numbers of a `row`."""


@dataclass
class DeviceUse:
    """One GPU over the windows in which it was watched. What it never told stays None, and is no zero.

    Attributes:
        memory: The most bytes that were in use.
    """

    memory: int | None = None
    _busy: float = 0.0
    _busy_seconds: float = 0.0
    _traffic: float = 0.0
    _traffic_seconds: float = 0.0
    _drawn: float = 0.0
    _drawn_seconds: float = 0.0
    _without_power: int = 0
    _counted: float = 0.0
    _windows: int = 0
    _with_counter: int = 0
    _seconds: float = 0.0

    def stretch(self, before: Load, after: Load, seconds: float) -> None:
        """A stretch between two looks.

        Its utilisation is that of its end, which tells of the moment before. Its power is the mean of both
        ends, so that energy is integrated by the trapezoidal rule.
        """
        self._seconds += seconds
        used = [each for each in (self.memory, before.memory, after.memory) if each is not None]
        self.memory = max(used, default=None)
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
        """As numbers, NaN for what was not told: use, memory, power, energy, memory's use, source."""
        joules, source = self._energy()
        percent = self._busy / self._busy_seconds if self._busy_seconds else None
        watts = self._drawn / self._drawn_seconds if self._drawn_seconds else None
        if joules is not None and self._seconds:
            watts = joules / self._seconds
        traffic = self._traffic / self._traffic_seconds if self._traffic_seconds else None
        told = (percent, self.memory, watts, joules, traffic)
        return [*(math.nan if each is None else float(each) for each in told), float(source)]

    def _energy(self) -> tuple[float | None, int]:
        if self._windows and self._with_counter == self._windows:
            return self._counted, 1
        return (self._drawn, 2) if self._drawn_seconds and not self._without_power else (None, 0)


def use_of(rank: int, device: int, row: Sequence[float]) -> GpuUse:
    """The record of what `DeviceUse.row` gave."""
    percent, memory, watts, joules, traffic = (None if math.isnan(each) else float(each) for each in row[:5])
    return GpuUse(
        rank=rank, device=device, percent=percent, memory_percent=traffic,
        memory_bytes=None if memory is None else int(memory), watts=watts, joules=joules,
        energy_from=_SOURCES[int(row[5])],
    )  # fmt: skip
