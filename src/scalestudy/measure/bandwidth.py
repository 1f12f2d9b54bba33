"""Bandwidth of an all-reduce, with the method and the definitions of nccl-tests.

Many sums are enqueued without waiting for each, and their total time is divided by their number. This gives
the bandwidth of the links, and for small messages the latency.

Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

SIZES = tuple(1024 * 4**step for step in range(11))
"""Message sizes in bytes: 1 KiB to 1 GiB, by factors of four."""
LARGEST_ON_CPU = 64 * 2**20
PART_OF_MEMORY = 8
"""Largest message as a part (1/n) of a GPU's memory, which also holds the sum and buffers of NCCL."""
UNKNOWN_MEMORY = 8 * 2**30
WITHIN = 30.0
"""Maximum seconds for one message size; larger sizes are skipped on all ranks."""


def algorithm_bandwidth(size: int, seconds: float) -> float:
    """Return the bytes per second that one rank sees summed: S / t."""
    return size / seconds


def bus_bandwidth(size: int, seconds: float, ranks: int) -> float:
    """Return the bytes per second that each link must carry: (S / t) × 2(n − 1) / n.

    Unlike S / t, this does not depend on the number of ranks, so it can be compared with the hardware.
    """
    return algorithm_bandwidth(size, seconds) * 2 * (ranks - 1) / ranks


def largest(device: str, memory: int | None) -> int:
    """Return the bytes of the largest message for a device ("cpu" or "gpu") with `memory` bytes, if known."""
    return LARGEST_ON_CPU if device == "cpu" else (memory or UNKNOWN_MEMORY) // PART_OF_MEMORY


def repeats(size: int, device: str) -> tuple[int, int]:
    """Return the number of calls to time and of sums chained in each; the same on every rank."""
    if size <= 1024 * 1024:
        return 3, 20
    return (1, 20) if device == "gpu" else (1, 4)


def too_slow(seconds: float, calls: int, sums: int) -> bool:
    """Return whether a size would exceed `WITHIN`, if a sum four times smaller took `seconds`."""
    return 4 * seconds * sums * (calls + 1) > WITHIN
