"""Columns that a task reads itself; sequences of different length are padded as they are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.columns import Column, Described, named, stem
from scalestudy.data.loading.order import Indices


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


CheckArray = Callable[[Path, tuple[int, ...], np.dtype[Any]], None]
"""(file, shape, type) -> raises ValueError if the array in it is another."""


def opened(folder: Path, side: str, described: Described) -> Any:
    """The arrays of "inputs" or "targets", mapped: one, or several by name; a `Ragged` for sequences."""
    if isinstance(described, Column):
        return _opened(folder, stem(side, None), described)
    return {name: _opened(folder, stem(side, name), column) for name, column in described.items()}


def check(folder: Path, side: str, described: Described, count: int, check_array: CheckArray) -> None:
    """Hold the files of `count` samples against what is said of them.

    Raises:
        OSError, ValueError: One is missing, or another.
    """
    for name, column in named(described):
        file, dtype = folder / f"{stem(side, name)}.npy", np.dtype(column.dtype)
        length = count
        if column.sequence:
            check_array(file.with_suffix(".offsets.npy"), (count + 1,), np.dtype(np.int64))
            length = int(_mapped(file.with_suffix(".offsets.npy"))[-1])
        check_array(file, (length, *column.fixed), dtype)


def _opened(folder: Path, name: str, column: Column) -> npt.NDArray[Any] | Ragged:
    values = _mapped(folder / f"{name}.npy")
    if not column.sequence:
        return values
    return Ragged(values, np.load(folder / f"{name}.offsets.npy", allow_pickle=False))


def _mapped(file: Path) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    return array
