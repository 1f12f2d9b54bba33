"""Bandwidth of an all-reduce, by the method and the definitions of nccl-tests.

Many sums are enqueued one after another without waiting for each, and their time together is divided by their
number; so bandwidth is that of the links, and the time of a small message its latency.

Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

SIZES = tuple(1024 * 4**step for step in range(11))
"""Message sizes in bytes: 1 KiB to 1 GiB, each four times the one before."""
LARGEST_ON_CPU = 64 * 2**20
PART_OF_MEMORY = 8
"""A GPU holds a message, its sum, and what NCCL and the framework need beside them."""
UNKNOWN_MEMORY = 8 * 2**30
WITHIN = 30.0
"""Seconds that one size may take; ranks agree to leave out those that would take longer."""


def algorithm_bandwidth(size: int, seconds: float) -> float:
    """Bytes per second that one rank sees summed: S / t."""
    return size / seconds


def bus_bandwidth(size: int, seconds: float, ranks: int) -> float:
    """Bytes per second that each link must carry for it: (S / t) × 2(n − 1) / n.

    Unlike S / t it does not fall with the number of ranks, so it can be held against the hardware.
    """
    return algorithm_bandwidth(size, seconds) * 2 * (ranks - 1) / ranks


def largest(device: str, memory: int | None) -> int:
    """Bytes of the largest message on a device ("cpu" or "gpu") with so much memory (None: unknown)."""
    return LARGEST_ON_CPU if device == "cpu" else (memory or UNKNOWN_MEMORY) // PART_OF_MEMORY


def repeats(size: int, device: str) -> tuple[int, int]:
    """How many calls to time, and how many sums are chained in each; the same on every rank."""
    if size <= 1024 * 1024:
        return 3, 20
    return (1, 20) if device == "gpu" else (1, 4)


def too_slow(seconds: float, calls: int, sums: int) -> bool:
    """Whether a size would take too long, if one four times smaller took so many seconds."""
    return 4 * seconds * sums * (calls + 1) > WITHIN
