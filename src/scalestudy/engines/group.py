"""The processes of a run, the workers that each computes, how they join, and what they exchange."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.plugins.strategies import traits
from scalestudy.util.registry import load


class Group:
    """All processes of a run. The default is a single process.

    Attributes:
        rank: Rank of this process; rank 0 writes files.
        size: Number of processes.
        communication: How workers sum gradients: "ring", "auto" (TensorFlow's choice of rings), "nccl",
            "gloo", "mpi"; None if nothing is exchanged, or if it is unknown.
    """

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        *,
        communication: str | None = None,
    ) -> None:
        self.rank = rank
        self.size = size
        self.communication = communication

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum an array (float64 or int64) over processes; the same on every rank."""
        return values

    def build_record(self) -> dict[str, Any]:
        """Return how the library that connects the processes was built, keyed by its name."""
        return {}

    def close(self) -> None:
        """Leave the group."""

    def share(self, value: NDArray[Any]) -> NDArray[Any]:
        """Return rank 0's array on every rank, bit for bit. Shape and type must be the same on all ranks."""
        # Rank 0's bytes as integers, plus zeros of all others: a sum of floats could change bits.
        words = _words(value)
        if self.rank:
            words = np.zeros_like(words)
        shared = self.host_sum(words).tobytes()[: value.nbytes]
        return np.frombuffer(shared, value.dtype).reshape(value.shape)

    def share_arrays(self, values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return rank 0's arrays on every rank, as `share` does, by a single sum."""
        # Each sum waits for the slowest rank.
        mine = np.frombuffer(b"".join(value.tobytes() for value in values), np.uint8)
        # Arrays over `bytes` would be read-only.
        flat = bytearray(self.share(mine))
        shared = []
        start = 0
        for value in values:
            part = flat[start : start + value.nbytes]
            shared.append(np.frombuffer(part, value.dtype).reshape(value.shape))
            start += value.nbytes
        return shared

    def mean(self, values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the mean of each array over processes, in the array's type, by a single sum."""
        flat = np.concatenate([value.ravel().astype(np.float64) for value in values])
        ends = np.cumsum([value.size for value in values])
        parts = np.split(self.host_sum(flat) / self.size, ends[:-1])
        means = []
        for part, value in zip(parts, values, strict=True):
            means.append(part.reshape(value.shape).astype(value.dtype))
        return means

    def gather(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Gather the rows of every rank's arrays (shapes [n, ...]), bit for bit, on every rank.

        Returns:
            Shapes [size · n, ...], rank 0's rows first.
        """
        if not arrays:
            return []
        # Each rank fills one row of a table of zeros; the sum of all tables has all rows.
        words = [_words(array) for array in arrays]
        table = np.zeros((self.size, sum(map(len, words))), np.int64)
        table[self.rank] = np.concatenate(words)
        ends = np.cumsum([len(row) for row in words])
        parts = np.split(self.host_sum(table), ends[:-1], axis=1)
        gathered = []
        for part, array in zip(parts, arrays, strict=True):
            rows = b"".join(row.tobytes()[: array.nbytes] for row in part)
            shape = (self.size * len(array), *array.shape[1:])
            gathered.append(np.frombuffer(rows, array.dtype).reshape(shape))
        return gathered


def _words(value: NDArray[Any]) -> NDArray[np.int64]:
    """Return the bytes of an array as int64 words, padded with zeros; adding zeros leaves them unchanged."""
    return np.frombuffer(value.tobytes() + bytes(-value.nbytes % 8), np.int64)


class Replicas:
    """The devices of one process and the workers they compute.

    Each engine subclasses it for the computation of workers and the exchange of gradients.

    Args:
        group: The processes of the run.
        workers: Number of workers of the run.
        slices: For each device of this process, the range of workers it computes: (first, last + 1).
        size: Number of copies of the model in all processes.
    """

    def __init__(
        self,
        group: Group,
        workers: int,
        *,
        slices: Sequence[tuple[int, int]],
        size: int = 1,
    ) -> None:
        self.group = group
        self.workers = workers
        self.slices = tuple(slices)
        self.size = size


class Joined(NamedTuple):
    """The result of `join`: the group of processes, and the replicas of this process."""

    group: Group
    replicas: Replicas


def join(
    name: str,
    placement: Placement,
    *,
    workers: int,
    device: str,
    communication: str = "auto",
) -> Joined:
    """Join the other workers of a strategy by the function that its `Traits.join` names.

    The engine must be set up before, because devices and threads are fixed once a process computes. `device`
    is "cpu" or "gpu". `communication` is "auto", "ring" or "nccl", if the strategy has a choice.
    """
    # By its name, so that only the framework in use is imported.
    joined: Joined = load(traits(name).join)(
        placement,
        workers=workers,
        device=device,
        communication=communication,
    )
    return joined
