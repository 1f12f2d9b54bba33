"""An array of losslessly encoded rows, which are decoded in parallel when they are read.

A row is the original JPEG file of a photograph, or the zlib compression of differences between lines (the
"up" filter of PNG). zlib alone decodes twice as fast as PNG readers, and supports every depth and number of
channels.
"""

import functools
import io
import math
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scalestudy.data.store.files import Shards
from scalestudy.data.types import Array
from scalestudy.hardware import cores
from scalestudy.util.errors import UserError

_JPEG = b"\xff\xd8"
"""First bytes of a JPEG file; zlib data starts differently."""
_LEVEL = 1
"""Compression level of zlib. Higher levels take several times as long and save a few percent."""


def encode(row: Array, file: bytes | None = None) -> bytes:
    """Encode a row for `decode`.

    Args:
        row: One sample: numbers of any shape but (), in C order.
        file: Contents of the original file, if any. Returned unchanged if it is a JPEG that decodes to
            exactly this row.
    """
    if file is not None and file.startswith(_JPEG) and row.ndim == 3 and row.dtype == np.uint8:
        decoded = np.empty_like(row)
        with suppress(ValueError):
            decode(file, decoded)
            if np.array_equal(decoded, row):
                return file
    numbers = _whole(row)
    lines = numbers.copy()
    lines[1:] -= numbers[:-1]
    return zlib.compress(lines.data, _LEVEL)


def decode(data: bytes, into: Array) -> None:
    """Decode `data` into the array `into`, which is in C order.

    Raises:
        ValueError: If `data` is damaged, or encodes a row of another shape or type.
    """
    try:
        if data.startswith(_JPEG):
            into[...] = _picture(data, into)
            return
        numbers = _whole(into)
        lines = np.frombuffer(zlib.decompress(data, bufsize=into.nbytes), numbers.dtype)
        np.add.accumulate(lines.reshape(numbers.shape), axis=0, dtype=numbers.dtype, out=numbers)
    except (OSError, SyntaxError, zlib.error) as error:  # Pillow's decoders raise the first two
        raise ValueError(str(error)) from error


def _whole(row: Array) -> Array:
    """View a row as unsigned integers of shape [lines, rest], whose differences wrap around without loss."""
    return row.view(f"u{row.dtype.itemsize}").reshape(len(row), -1)


def _picture(data: bytes, like: Array) -> Array:
    mode = "RGB" if like.shape[-1] == 3 else "L"
    with Image.open(io.BytesIO(data), formats=("JPEG",)) as picture:
        pixels = np.asarray(picture if picture.mode == mode else picture.convert(mode))
    if pixels.shape[:2] != like.shape[:2]:
        raise ValueError(f"an image of shape {list(pixels.shape)}, not {list(like.shape)}")
    return pixels.reshape(like.shape)


class Encoded:
    """Encoded rows [N, ...] with the interface of a memory-mapped array of samples.

    It supports indexing by a row, a slice or an array of rows, `take`, `len`, `shape`, `dtype`, and
    `np.asarray`, which decodes all rows. Decoded rows are not cached. The encoded bytes stay in the page
    cache, which all processes of a node share.

    Args:
        folder: Folder of the files.
        name: First part of the file names.
        shape: Shape of all rows, (N, ...).
        dtype: Type of the decoded rows.
    """

    def __init__(self, folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)
        self.size = math.prod(shape)
        self.nbytes = self.size * dtype.itemsize
        self._shards, self._where = Shards(folder, name), folder / name

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        """Return one row, or the rows of a slice, an array of row numbers or a boolean array."""
        if isinstance(rows, int | np.integer):
            row: Array = self.take(np.array([rows]))[0]
            return row
        if isinstance(rows, tuple):
            raise TypeError("rows are decoded whole: index the row, and then its pixels")
        return self.take(np.arange(len(self))[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.take(np.arange(len(self))).astype(dtype or self.dtype, copy=False)

    def take(self, rows: Any, axis: int | None = 0, out: Array | None = None, mode: str = "raise") -> Array:
        """Return rows [b, ...] by their numbers [b], like `numpy.ndarray.take` along the first axis.

        Raises:
            IndexError: If a row does not exist.
            UserError: If stored data is damaged or missing.
        """
        numbers = np.asarray(rows, np.int64)
        numbers = np.where(numbers < 0, numbers + len(self), numbers) if mode == "raise" else numbers
        flat = numbers.ravel().tolist()
        into = np.empty((len(flat), *self.shape[1:]), self.dtype) if out is None else out
        work = iter(list(enumerate(flat)))  # shared by the threads; each takes the next row
        helpers, pool = _helpers()
        helping = [pool.submit(self._decode, work, into) for _ in range(min(helpers, len(flat) - 1))]
        try:
            self._decode(work, into)
        finally:
            wait(helping := [helper for helper in helping if not helper.cancel()])
        for helper in helping:
            helper.result()
        return into.reshape(*numbers.shape, *self.shape[1:])

    def _decode(self, work: Iterator[tuple[int, int]], into: Array) -> None:
        for place, row in work:
            try:
                decode(self._shards.row(row), into[place])
            except (OSError, ValueError) as error:
                raise UserError(
                    "an unchanged prepared data set",
                    f"row {row} of {self._where}: {error}",
                    "Delete that folder and run again to prepare it once more.",
                ) from error


@functools.cache
def _helpers() -> tuple[int, ThreadPoolExecutor]:
    """Return number and pool of helper threads: one per granted core but one. Decoders release the GIL."""
    threads = max(1, len(cores.granted()) - 1)
    return len(cores.granted()) - 1, ThreadPoolExecutor(threads, thread_name_prefix="decode")
