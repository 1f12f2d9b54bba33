"""The samples of each step. Their order depends on the study, not on the strategy."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def epoch_order(samples: Indices, seed: int, epoch: int) -> Indices:
    """Return the permutation of `samples` (shape [N]) for an epoch (from 0) and a seed."""
    generator = np.random.Generator(np.random.Philox(key=[seed, epoch]))
    return samples[generator.permutation(len(samples))]


def batches(samples: int, global_batch: int) -> Iterator[tuple[int, int]]:
    """Yield the rows [start, stop) of an epoch's order for each step; the last batch may be smaller."""
    for start in range(0, samples, global_batch):
        yield start, min(start + global_batch, samples)


def worker_slice(batch: int, rank: int, size: int) -> tuple[int, int]:
    """Return the rows [start, stop) of worker `rank` of `size` in a global batch of `batch` rows.

    Slices are contiguous, cover the batch, and differ by at most one row.
    """
    return rank * batch // size, (rank + 1) * batch // size
