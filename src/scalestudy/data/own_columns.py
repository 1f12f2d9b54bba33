"""The columns of a set that a task reads itself, opened from the set's folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.column import Column, Described, named, stem
from scalestudy.data.ragged import Ragged

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
