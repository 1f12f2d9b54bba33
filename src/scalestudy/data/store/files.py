"""Files of rows: an .npy array written row by row, and rows of differing lengths in shards.

`NAME-00000.bin`, `NAME-00001.bin`, ... hold rows one after another, each whole in one file, and
`NAME-index.npy` [N, 3] says of every row its file, its first byte and its length (int64).
"""

import hashlib
import os
import threading
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np


class Digested:
    """A file that is written, and the SHA-256 of what was written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def write(self, data: Any) -> int:
        """Write bytes, or a contiguous buffer."""
        self._digest.update(data)
        return self._file.write(data)

    def hexdigest(self) -> str:
        """Of all so far."""
        return self._digest.hexdigest()


class ArrayFile:
    """Writes `NAME.npy`: its header at once, then what it is given.

    Raises, as its methods do:
        OSError: The folder cannot take it.
    """

    def __init__(self, folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._name = f"{name}.npy"
        self._stream = open(folder / self._name, "wb")  # noqa: SIM115
        self._digested = Digested(self._stream)
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._digested, header)  # type: ignore[arg-type]

    def write(self, row: Any) -> None:
        """Add the bytes of a row."""
        self._digested.write(row)

    def finish(self) -> dict[str, str]:
        """Have it on the disk: its SHA-256 by its name."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.close()
        return {self._name: self._digested.hexdigest()}

    def close(self) -> None:
        """Close the file, whole or not."""
        self._stream.close()


MOST = 4 * 2**30
"""Bytes after which a new file is begun: file systems that stripe spread many files, and few stay open."""


def shard_name(name: str, number: int) -> str:
    """Name of the file with that number."""
    return f"{name}-{number:05}.bin"


def index_name(name: str) -> str:
    """Name of the index."""
    return f"{name}-index.npy"


class ShardWriter:
    """Writes rows into files of at most `most` bytes (or of one row that is longer), and their index.

    Raises, as its methods do:
        OSError: The folder cannot take them.
    """

    def __init__(self, folder: Path, name: str, most: int = MOST) -> None:
        self._folder, self._name, self._most = folder, name, most
        self._places: list[tuple[int, int, int]] = []
        self._digests: dict[str, str] = {}
        self._number = self._end = 0
        self._begin(shard_name(name, 0))

    def write(self, row: bytes) -> None:
        """Add a row."""
        if self._end and self._end + len(row) > self._most:
            self._end_file()
            self._number, self._end = self._number + 1, 0
            self._begin(shard_name(self._name, self._number))
        self._digested.write(row)
        self._places.append((self._number, self._end, len(row)))
        self._end += len(row)

    def finish(self) -> dict[str, str]:
        """Have all on the disk: SHA-256 of each file by its name."""
        self._end_file()
        self._begin(index_name(self._name))
        np.lib.format.write_array(self._digested, np.array(self._places, np.int64).reshape(-1, 3))  # type: ignore[arg-type]
        self._end_file()
        return self._digests

    def close(self) -> None:
        """Close the file that is being written, whole or not."""
        self._stream.close()

    def _begin(self, file: str) -> None:
        self._file = file
        self._stream = open(self._folder / file, "wb")  # noqa: SIM115
        self._digested = Digested(self._stream)

    def _end_file(self) -> None:
        self._digests[self._file] = self._digested.hexdigest()
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()


class Shards:
    """The rows of `write_shards`, read by their number; several threads may read at once."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._index = np.load(folder / index_name(name), mmap_mode="r", allow_pickle=False)
        self._open: dict[int, int] = {}
        self._lock = threading.Lock()
        files = self._files = ExitStack()
        weakref.finalize(self, files.close)

    def __len__(self) -> int:
        return len(self._index)

    def row(self, number: int) -> bytes:
        """The bytes of a row.

        Raises:
            IndexError: There is no such row.
            OSError: Its file is missing, shorter than it was, or cannot be read.
        """
        if not 0 <= number < len(self._index):
            raise IndexError(f"row {number} of {len(self._index)}")
        shard, start, length = self._index[number].tolist()
        data = os.pread(self._file(shard), length, start)
        if len(data) != length:
            raise OSError(f"{shard_name(self._name, shard)} ends within row {number}")
        return data

    def _file(self, shard: int) -> int:
        descriptor = self._open.get(shard)
        if descriptor is None:
            with self._lock:
                descriptor = self._open.get(shard)
                if descriptor is None:
                    descriptor = os.open(
                        self._folder / shard_name(self._name, shard), os.O_RDONLY | os.O_CLOEXEC
                    )
                    self._files.callback(os.close, descriptor)
                    self._open[shard] = descriptor
        return descriptor
