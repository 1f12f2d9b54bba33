"""Files of rows: an .npy array written row by row, and rows of different lengths in shards.

The shards `NAME-00000.bin`, `NAME-00001.bin`, ... contain whole rows one after another. `NAME-index.npy`
[N, 3] contains the file number, first byte and length of each row (int64).
"""

import hashlib
import os
import threading
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

SHARD_BYTES = 4 * 2**30
"""Maximum bytes of a shard: several files spread over a striped file system, and few must stay open."""


def shard_name(name: str, number: int) -> str:
    """Return the name of the shard with this number."""
    return f"{name}-{number:05}.bin"


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


class ShardWriter:
    """Writes rows into shards of at most `most` bytes (or one longer row), and their index.

    The constructor and all methods raise OSError if the folder is not writable or full.
    """

    def __init__(self, folder: Path, name: str, most: int = SHARD_BYTES) -> None:
        self._folder, self._name, self._most = folder, name, most
        self._places: list[tuple[int, int, int]] = []
        self._digests: dict[str, str] = {}
        self._number = self._end = 0
        self._open(shard_name(name, 0))

    def write(self, row: bytes) -> None:
        """Add a row."""
        if self._end and self._end + len(row) > self._most:
            self._finish_file()
            self._number, self._end = self._number + 1, 0
            self._open(shard_name(self._name, self._number))
        self._file.write(row)
        self._places.append((self._number, self._end, len(row)))
        self._end += len(row)

    def finish(self) -> dict[str, str]:
        """Sync all files to disk, and return the SHA-256 of each by file name."""
        self._finish_file()
        self._open(index_name(self._name))
        np.lib.format.write_array(self._file, np.array(self._places, np.int64).reshape(-1, 3))  # type: ignore[arg-type]
        self._finish_file()
        return self._digests

    def close(self) -> None:
        """Close the current file, complete or not."""
        self._file.close()

    def _open(self, file_name: str) -> None:
        self._file_name, self._file = file_name, HashedFile(self._folder / file_name)

    def _finish_file(self) -> None:
        self._digests[self._file_name] = self._file.finish()


class Shards:
    """Reads the rows of a `ShardWriter` by their number. Thread-safe."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._index = np.load(folder / index_name(name), mmap_mode="r", allow_pickle=False)
        self._open: dict[int, int] = {}
        self._lock = threading.Lock()
        self._files = ExitStack()
        weakref.finalize(self, self._files.close)

    def __len__(self) -> int:
        return len(self._index)

    def row(self, number: int) -> bytes:
        """Return the bytes of a row.

        Raises:
            IndexError: If the row does not exist.
            OSError: If its file is missing or truncated, or cannot be read.
        """
        if not 0 <= number < len(self._index):
            raise IndexError(f"row {number} of {len(self._index)}")
        shard, start, length = self._index[number].tolist()
        data = os.pread(self._descriptor(shard), length, start)
        if len(data) != length:
            raise OSError(f"{shard_name(self._name, shard)} ends within row {number}")
        return data

    def _descriptor(self, shard: int) -> int:
        if shard not in self._open:
            with self._lock:
                if shard not in self._open:
                    path = self._folder / shard_name(self._name, shard)
                    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                    self._files.callback(os.close, descriptor)
                    self._open[shard] = descriptor
        return self._open[shard]
