"""Bandwidth of an all-reduce, by the definition of nccl-tests.

Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from dataclasses import dataclass

SIZES = tuple(1024 * 4**step for step in range(9))
"""Message sizes in bytes: 1 KiB to 64 MiB, each four times the one before."""


def algorithm_bandwidth(size: int, seconds: float) -> float:
    """Bytes per second that one rank sees summed: S / t."""
    return size / seconds


def bus_bandwidth(size: int, seconds: float, ranks: int) -> float:
    """Bytes per second that each link must carry for it: (S / t) × 2(n − 1) / n.

    Unlike S / t it does not fall with the number of ranks, so it can be held against the hardware.
    """
    return algorithm_bandwidth(size, seconds) * 2 * (ranks - 1) / ranks


def repeats(size: int) -> tuple[int, int]:
    """How often to sum a message before timing and while timing; the same on every rank."""
    return (3, 20) if size <= 1024 * 1024 else (1, 5)


@dataclass(frozen=True)
class AllReduce:
    """One all-reduce over all units of a node: seconds for `bytes` with `ranks` processes.

    Attributes:
        collective: What summed, for people: "TensorFlow RING".
        ranks: Processes.
        bytes: Size of the message.
        seconds: Of one sum.
    """

    collective: str
    ranks: int
    bytes: int
    seconds: float

    @property
    def bus_bandwidth(self) -> float:
        """Bytes per second by nccl-tests' definition."""
        return bus_bandwidth(self.bytes, self.seconds, self.ranks)
