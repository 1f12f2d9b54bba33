"""Files of a prepared set: its new folder, arrays written row by row, rows of any length, and encoded ones.

Rows of different lengths are one after another in `NAME.bin`; `NAME-index.npy` [N + 1] (int64) contains the
first byte of each row, and the end of the last. An encoded row is the original JPEG file of a photograph, or
the zlib compression of differences between lines (the "up" filter of PNG). zlib alone decodes twice as fast
as PNG readers, and supports every depth and number of channels.
"""

import functools
import hashlib
import io
import math
import os
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scalestudy.data.samples import Array
from scalestudy.hardware import cores
from scalestudy.util.errors import UserError
from scalestudy.util.files import sync_folder
from scalestudy.util.locks import take

_MARK = ".tmp-"


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Wait for the lock of a set and hold it; yield False on file systems without locks.

    Raises:
        UserError: If the cache folder cannot be created or written to.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = take(folder.parent / f"{folder.name}.lock", wait=True)
    except OSError as error:
        raise _unwritable("a cache folder that can be written to", folder, error) from error
    if lock is None:
        yield False
        return
    with lock:
        yield True


@contextmanager
def new_folder(place: Path, is_whole: Callable[[], bool], *, alone: bool) -> Iterator[Path]:
    """Yield a temporary folder, and rename it to `place` at the end, replacing an incomplete folder there.

    `is_whole` tells whether the folder at `place` is complete. Leftovers of killed processes are removed only
    if `alone`, while the lock is held.

    Raises:
        UserError: If the cache folder is not writable or full.
    """
    temporary = None
    try:
        for leftover in place.parent.glob(f"{place.name}{_MARK}*") if alone else ():
            shutil.rmtree(leftover, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{place.name}{_MARK}", dir=place.parent))
        yield temporary
        temporary.chmod(0o755)
        if place.exists() and not is_whole():
            place.rename(temporary / "damaged")
            shutil.rmtree(temporary / "damaged")
        try:
            temporary.rename(place)
            sync_folder(place.parent)
        except OSError:
            # Without locks, another process may have completed it first: keep that folder and its splits.
            if not is_whole():
                raise
    except OSError as error:
        raise _unwritable(
            "a cache folder that stays, can be written to and has space", place, error
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _unwritable(expected: str, folder: Path, error: OSError) -> UserError:
    received = f"{folder.parent}: {error.strerror or error}"
    return UserError(expected, received, "Free some space there, or set another `cache` under [data].")


def index_name(name: str) -> str:
    """Return the name of the index file."""
    return f"{name}-index.npy"


def write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Write NumPy's header. It has room for a longer first axis, so its length does not depend on it."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[arg-type]


def check_array(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Check the header and the size of an .npy file.

    Raises:
        OSError: If the file is missing or cannot be read.
        ValueError: If its format, shape, type or size differs.
    """
    with file.open("rb") as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{file.name} is of another format")
        header = np.lib.format.read_array_header_1_0(stream)
        start = stream.tell()
    if header != (shape, False, dtype):
        raise ValueError(f"{file.name} holds {list(header[0])} {header[2]}, not {list(shape)} {dtype}")
    expected = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if file.stat().st_size != expected:
        raise ValueError(f"{file.name} has {file.stat().st_size} bytes, not {expected}")


class HashedFile:
    """A file being written, with the SHA-256 of its contents."""

    def __init__(self, path: Path) -> None:
        self._stream = open(path, "wb")  # noqa: SIM115 (closed by `finish` or `close`)
        self._digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        """Write bytes, or a contiguous buffer."""
        self._digest.update(data)
        return self._stream.write(data)

    def finish(self) -> str:
        """Sync the file to disk, close it, and return its SHA-256."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file, complete or not."""
        self._stream.close()


class ArrayFile:
    """Writes `NAME.npy`: first the header, then the bytes of rows.

    The constructor and all methods raise OSError if the folder is not writable or full.
    """

    def __init__(self, folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._name = f"{name}.npy"
        self._file = HashedFile(folder / self._name)
        write_header(self._file, shape, dtype)
        self.write, self.close = self._file.write, self._file.close

    def finish(self) -> dict[str, str]:
        """Sync the file to disk, and return its SHA-256 by file name."""
        return {self._name: self._file.finish()}


class RowsFile:
    """Writes rows of different lengths into `NAME.bin`, and their index.

    The constructor and all methods raise OSError if the folder is not writable or full.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name, self._starts = folder, name, [0]
        self._file = HashedFile(folder / f"{name}.bin")
        self.close = self._file.close

    def write(self, row: bytes) -> None:
        """Add a row."""
        self._starts.append(self._starts[-1] + self._file.write(row))

    def finish(self) -> dict[str, str]:
        """Sync all files to disk, and return the SHA-256 of each by file name."""
        index = HashedFile(self._folder / index_name(self._name))
        np.lib.format.write_array(index, np.array(self._starts, np.int64))  # type: ignore[arg-type]
        return {f"{self._name}.bin": self._file.finish(), index_name(self._name): index.finish()}


class Rows:
    """Reads the rows of a `RowsFile` by their number. Thread-safe."""

    def __init__(self, folder: Path, name: str) -> None:
        self._starts = np.load(folder / index_name(name), mmap_mode="r", allow_pickle=False)
        self._descriptor = os.open(folder / f"{name}.bin", os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)

    def row(self, number: int) -> bytes:
        """Return the bytes of a row.

        Raises:
            IndexError: If the row does not exist.
            OSError: If the file is truncated or cannot be read.
        """
        if not 0 <= number < len(self._starts) - 1:
            raise IndexError(f"row {number} of {len(self._starts) - 1}")
        start, stop = self._starts[number : number + 2].tolist()
        data = os.pread(self._descriptor, stop - start, start)
        if len(data) != stop - start:
            raise OSError(f"its file ends within row {number}")
        return data


_JPEG = b"\xff\xd8"
"""First bytes of a JPEG file; zlib data starts differently."""
_LEVEL = 1
"""Compression level of zlib. Higher levels take several times as long and save a few percent."""


def encode(row: Array, file: bytes | None = None) -> bytes:
    """Encode a row for `decode`.

    `row` holds numbers of any shape but (), in C order. The contents of the original `file` are returned
    unchanged if it is a JPEG that decodes to exactly this row.
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
        name: First part of the file names.
        shape: Shape of all rows, (N, ...).
        dtype: Type of the decoded rows.
    """

    def __init__(self, folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)
        self.size = math.prod(shape)
        self.nbytes = self.size * dtype.itemsize
        self._rows, self._where = Rows(folder, name), folder / name

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
                decode(self._rows.row(row), into[place])
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
