"""Which samples a step takes. The order belongs to the study, never to the strategy."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def epoch_order(samples: Indices, seed: int, epoch: int) -> Indices:
    """The permutation of `samples` (shape [N]) that epoch `epoch` (from 0) walks under `seed`."""
    generator = np.random.Generator(np.random.Philox(key=[seed, epoch]))
    return samples[generator.permutation(len(samples))]


def batches(samples: int, global_batch: int) -> Iterator[tuple[int, int]]:
    """The rows [start, stop) of an epoch's order that each step takes; the last may be smaller."""
    for start in range(0, samples, global_batch):
        yield start, min(start + global_batch, samples)


def worker_slice(batch: int, rank: int, size: int) -> tuple[int, int]:
    """The rows [start, stop) of a global batch of `batch` rows that worker `rank` of `size` takes.

    Slices are contiguous, cover the batch, and differ by one row at most.
    """
    return rank * batch // size, (rank + 1) * batch // size
