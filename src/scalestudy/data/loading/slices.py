"""The samples of each step, and a worker's part of them.

Their order depends on the study, not on the strategy.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalestudy.data.columns import map_columns

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


class Slice(NamedTuple):
    """One device's part of a step, or of each step of a call (consecutive steps of one size).

    The loader creates it with arrays for a whole call. The engine stages the arrays: it creates tensors on
    the device. For each step it takes a slice of that step and passes it to the layers.

    Attributes:
        inputs: Rows as stored, shape [b, H, W, C]; for a call [S, b, H, W, C], where only the first `steps`
            are used. A dictionary by name for several inputs.
        targets: Shape [b, ...] or [S, b, ...]; a dictionary by name for several targets.
        start: Position of the first row in the global batch.
        count: Number of rows that count: b, or 0 for an empty slice, which holds the first row of the global
            batch with weight 0.
        total: Rows of the global batch.
        step: Step of the run, from 0; for a call its first step.
        steps: Steps of the call.
        first: Whether no other slice of this step has used the same variables yet. False only for later parts
            of a slice, and for workers that are computed one after another.
    """

    inputs: Any
    targets: Any
    start: Any
    count: Any
    total: Any
    step: Any = 0
    steps: Any = 1
    first: Any = True

    def mapped(self, function: Callable[[Any], Any], **changes: Any) -> "Slice":
        """Return the slice with `function` applied to each array, and with these changed fields."""
        inputs, targets = (map_columns(function, side) for side in (self.inputs, self.targets))
        return self._replace(inputs=inputs, targets=targets, **changes)


Call = tuple[Slice, ...]
"""One or more consecutive steps of one size: a slice for each device of a process."""
