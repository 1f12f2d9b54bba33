"""What a process used, as a row of numbers that all ranks can gather, and that a checkpoint keeps. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scalestudy.measure.counters import OF_NODE, OF_PROCESS
from scalestudy.measure.gpu_use import WIDTH, joined, use_of
from scalestudy.study.usage import GpuUse, NodeUse, ProcessUse

_FIXED = 2
"""Whether it tells of its node, and its peak memory; then what adds up; then its GPUs."""
_SUMS = ("core_seconds", *OF_PROCESS, *OF_NODE)
"""Seconds of cores granted, then the counters."""


@dataclass(frozen=True)
class Usage:
    """What one process used. Unknown is NaN.

    Attributes:
        node: Whether it tells of its node.
        peak_memory: Bytes; not of earlier processes.
        sums: Of `_SUMS`.
        gpus: Rows of its GPUs.
    """

    node: bool
    peak_memory: float
    sums: NDArray[np.float64]
    gpus: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, row: Sequence[float]) -> "Usage":
        """What `row` gave."""
        numbers = [float(each) for each in row]
        start = _FIXED + len(_SUMS)
        gpus = [tuple(numbers[at : at + WIDTH]) for at in range(start, len(numbers), WIDTH)]
        return cls(bool(numbers[0]), numbers[1], np.array(numbers[_FIXED:start]), tuple(gpus))

    def row(self) -> list[float]:
        """It as numbers; as many on every rank that has as many GPUs."""
        gpus = [each for row in self.gpus for each in row]
        return [float(self.node), self.peak_memory, *self.sums.tolist(), *gpus]

    def after(self, earlier: "Usage") -> "Usage":
        """This of a process that went on from `earlier`, which had as many GPUs."""
        gpus = [tuple(joined(one, other)) for one, other in zip(earlier.gpus, self.gpus, strict=True)]
        return Usage(self.node, self.peak_memory, self.sums + earlier.sums, tuple(gpus))

    @property
    def cpu_percent(self) -> float:
        """Mean share of the granted cores that was used, in per cent; 0 without any time."""
        granted, used = self.sums[0], self.sums[1]
        return float(100 * used / granted) if granted else 0.0

    def process_use(self, rank: int) -> ProcessUse:
        """The record of the process."""
        return ProcessUse(
            rank=rank,
            cpu_seconds=_known(self._sum("cpu_seconds")),
            read_bytes=_whole(self._sum("read_bytes")),
            written_bytes=_whole(self._sum("written_bytes")),
        )

    def node_use(self, rank: int) -> NodeUse:
        """The record of its node."""
        return NodeUse(
            rank=rank,
            sent_bytes=_whole(self._sum("sent_bytes")),
            received_bytes=_whole(self._sum("received_bytes")),
            loopback_bytes=_whole(self._sum("loopback_bytes")),
            cpu_joules=_known(self._sum("cpu_joules")),
        )

    def gpu_uses(self, rank: int) -> list[GpuUse]:
        """The records of its GPUs."""
        return [use_of(rank, device, row) for device, row in enumerate(self.gpus)]

    def _sum(self, name: str) -> float:
        return float(self.sums[_SUMS.index(name)])


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else round(value)
