"""The processes of a run, the workers that each computes, and how they join. NumPy in, NumPy out."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.study.strategies import traits
from scalestudy.util.registry import loaded


class Group:
    """All processes of a run, as one of them sees them. The default is one process alone.

    Attributes:
        rank: Of this process; rank 0 writes.
        size: How many there are.
        communication: By what workers sum gradients: "ring", "auto" (TensorFlow's choice of rings), "nccl",
            "gloo", "mpi"; None where nothing is exchanged, or it is not known.
    """

    def __init__(self, rank: int = 0, size: int = 1, *, communication: str | None = None) -> None:
        self.rank, self.size, self.communication = rank, size, communication

    def host_sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over processes of an array (float64 or int64), the same on every rank."""
        return values

    def build_record(self) -> dict[str, Any]:
        """How the library by which they meet was built, by its name."""
        return {}

    def close(self) -> None:
        """Leave the group."""

    def share(self, value: NDArray[Any]) -> NDArray[Any]:
        """The array that rank 0 has, bit for bit, on every rank. All must bring one of its shape and type."""
        words = _words(value)
        words = self.host_sum(words if self.rank == 0 else np.zeros_like(words))
        return np.frombuffer(words.tobytes()[: value.nbytes], value.dtype).reshape(value.shape)

    def share_object(self, value: Any) -> Any:
        """What rank 0 has, on every rank: anything that can be pickled."""
        if self.size == 1:
            return value
        mine = np.frombuffer(pickle.dumps(value) if self.rank == 0 else b"", np.uint8)
        (length,) = self.share(np.array([len(mine)], np.int64))
        return pickle.loads(self.share(mine if self.rank == 0 else np.zeros(int(length), np.uint8)).tobytes())

    def mean(self, values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The mean of each array over the processes, in its own type; in one sum."""
        flat = np.concatenate([value.ravel().astype(np.float64) for value in values])
        parts = np.split(self.host_sum(flat) / self.size, np.cumsum([value.size for value in values])[:-1])
        return [
            part.reshape(value.shape).astype(value.dtype) for part, value in zip(parts, values, strict=True)
        ]

    def gather(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The rows of every rank's arrays (shapes [n, ...]), bit for bit, on every rank.

        Returns:
            Shapes [size · n, ...], rank 0's rows first.
        """
        if not arrays:
            return []
        words = [_words(array) for array in arrays]
        table = np.zeros((self.size, sum(map(len, words))), np.int64)
        table[self.rank] = np.concatenate(words)
        parts = np.split(self.host_sum(table), np.cumsum([len(row) for row in words])[:-1], axis=1)
        return [
            np.frombuffer(b"".join(row.tobytes()[: array.nbytes] for row in part), array.dtype).reshape(
                self.size * len(array), *array.shape[1:]
            )
            for part, array in zip(parts, arrays, strict=True)
        ]


def _words(value: NDArray[Any]) -> NDArray[np.int64]:
    """The bytes of an array, filled up to whole words: added to all others' zeros, they stay as they are."""
    return np.frombuffer(value.tobytes() + bytes(-value.nbytes % 8), np.int64)


@dataclass(frozen=True)
class RemoteRows:
    """What a process knows of rows that the workers read for themselves, each in its own process.

    Attributes:
        training: Shape and type of one input and of one target, or of several by name; None in shapes is any
            length.
        evaluation: The same of what is evaluated.
        watch: Called while workers are waited for; raises what keeps them from going on.
    """

    training: tuple[Any, Any]
    evaluation: tuple[Any, Any]
    watch: Callable[[], None]


class Replicas:
    """The devices of one process and the workers they compute.

    What they compute, and how they combine their gradients, is the business of their engine.

    Args:
        group: The processes of the run.
        workers: Workers of the run.
        slices: For each device of this process, the workers (first, beyond the last) it computes.
        size: Copies of the model among all processes.

    Attributes:
        remote: Of workers in other processes, under one that coordinates them: slices are then row numbers
            (inputs) with their epoch (targets; -1 in evaluation), both of shape [b]. Else None.
    """

    remote: RemoteRows | None = None

    def __init__(
        self, group: Group, workers: int, *, slices: Sequence[tuple[int, int]], size: int = 1
    ) -> None:
        self.group, self.workers, self.slices, self.size = group, workers, tuple(slices), size


class Joined(NamedTuple):
    """What a strategy's `join` gives: the group of processes, and the replicas of this one."""

    group: Group
    replicas: Replicas


def join(
    name: str, placement: Placement, *, workers: int, device: str, communication: str = "auto"
) -> Joined:
    """Join the other workers of a strategy that does the work itself; its `Traits.join` says where that is.

    The engine must be set up before: devices and threads are fixed once a process computes. `device` is "cpu"
    or "gpu", `communication` "auto", "ring" or "nccl", where the strategy has a choice.
    """
    joined: Joined = loaded(traits(name).join)(
        placement, workers=workers, device=device, communication=communication
    )
    return joined
