"""An array that is kept encoded on disk: its rows are decoded as they are asked for, several at once."""

import functools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.encoding import decode
from scalestudy.data.shards import Shards
from scalestudy.errors import UserError
from scalestudy.machine import cores

Array = npt.NDArray[Any]


class Encoded:
    """Rows kept encoded, [N, ...]: what can be done with them is what is done with a mapped array of samples.

    Indexing by a row, a slice or an array of rows, `take`, `len`, `shape`, `dtype`, and `np.asarray`, which
    decodes all of them. Nothing decoded is kept: what stays in memory are the encoded bytes, in the page
    cache, once for all processes of a node.

    Args:
        folder: Where its files lie.
        name: That its files begin with.
        shape: Of all rows, (N, ...).
        dtype: Of their numbers.
    """

    def __init__(self, folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)
        self.size = math.prod(shape)
        self.nbytes = self.size * dtype.itemsize
        self._shards, self._where = Shards(folder, name), folder / name

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        """The row of a number, or the rows of a slice or of an array of numbers or truths."""
        if isinstance(rows, int | np.integer):
            one: Array = self.take(np.array([rows]))[0]
            return one
        if isinstance(rows, tuple):
            raise TypeError("rows are decoded whole: index the row, and then its pixels")
        return self.take(np.arange(len(self))[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.take(np.arange(len(self))).astype(dtype or self.dtype, copy=False)

    def take(self, rows: Any, axis: int | None = 0, out: Array | None = None, mode: str = "raise") -> Array:
        """Rows [b, ...] by their numbers [b], as `numpy.ndarray.take` gives them along the first axis.

        Raises:
            IndexError: There is no such row.
            UserError: What is stored is damaged or missing.
        """
        numbers = np.asarray(rows, np.int64)
        numbers = np.where(numbers < 0, numbers + len(self), numbers) if mode == "raise" else numbers
        flat = numbers.ravel().tolist()
        into = np.empty((len(flat), *self.shape[1:]), self.dtype) if out is None else out
        work = iter(list(enumerate(flat)))  # whoever is done with a row takes the next
        helpers, pool = _helpers()
        helping = [pool.submit(self._decode, work, into) for _ in range(min(helpers, len(flat) - 1))]
        try:
            self._decode(work, into)
        finally:
            wait(helping := [each for each in helping if not each.cancel()])
        for each in helping:
            each.result()
        return into.reshape(*numbers.shape, *self.shape[1:])

    def _decode(self, work: Iterator[tuple[int, int]], into: Array) -> None:
        for place, row in work:
            try:
                decode(self._shards.row(row), into[place])
            except (OSError, ValueError) as error:
                raise UserError(
                    "a prepared data set as it was written",
                    f"row {row} of {self._where}: {error}",
                    "Delete that folder and run again: it is made anew from its source.",
                ) from error


@functools.cache
def _helpers() -> tuple[int, ThreadPoolExecutor]:
    """With who asks, as many threads as cores granted: Pillow and zlib let go of the others to decode."""
    threads = max(1, len(cores.granted()) - 1)
    return len(cores.granted()) - 1, ThreadPoolExecutor(threads, thread_name_prefix="decode")
