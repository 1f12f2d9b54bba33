"""Sequences of different length: stored end to end, padded as they are read."""

from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.order import Indices


class Ragged:
    """N sequences in two arrays.

    Args:
        values: Their elements one after another, shape [elements, ...].
        offsets: Where each begins, and where the last ends, shape [N + 1].
    """

    def __init__(self, values: npt.NDArray[Any], offsets: npt.NDArray[np.int64]) -> None:
        self.values, self.offsets = values, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return int(self.values.nbytes + self.offsets.nbytes)

    def form(self, rows: Indices) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of one sequence, padded to the longest of `rows` (at least one element)."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        return (max(1, int(lengths.max())), *self.values.shape[1:]), self.values.dtype

    def copy(self, rows: Indices, into: npt.NDArray[Any]) -> None:
        """Copy sequences to `into` (shape [rows, length, ...]), with zeros behind the end of each.

        Raises:
            IndexError: If there is no such row.
            ValueError: If one is longer than `into`.
        """
        if rows.min() < 0 or rows.max() >= len(self):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(self)}")
        for row, out in zip(rows, into, strict=True):
            start, stop = self.offsets[row], self.offsets[row + 1]
            out[: stop - start] = self.values[start:stop]
            out[stop - start :] = 0
