"""Reading an array of an .npz file row by row, so that a large one never lies in memory.

Nothing is unpickled or extracted to disk; what a header claims is held against the archive and the memory
before anything is allocated.
"""

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from scalestudy.hardware.memory import memory_limit
from scalestudy.util import units
from scalestudy.util.errors import UserError

_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,  # a password, an unknown compression
    MemoryError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
)


class NpzArray:
    """One array of an .npz file: its `shape` and `dtype` from its header, its rows on demand.

    Raises:
        UserError: it cannot be read, holds Python objects, is not of the size that its header says, or a row
            of it (all of it in Fortran order) does not fit into the memory.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        try:
            with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
                self.shape, self._fortran, self.dtype = _header(stream)
                held = archive.getinfo(f"{name}.npy").file_size - stream.tell()
        except Exception as error:  # zipfile, zlib and numpy's parser of headers raise many kinds
            raise self.unreadable(error) from error
        if self.dtype.hasobject:
            raise UserError(
                "arrays of numbers",
                f"{name} in {path}, an array of Python objects",
                "Save it as one array of numbers; objects are never unpickled, since that runs their code.",
            )
        self.bytes = math.prod(self.shape) * self.dtype.itemsize
        if min(self.shape, default=0) < 0 or self.bytes != held:
            shape = f"[{', '.join(map(str, self.shape))}] {self.dtype}"
            raise self.unreadable(f"its header says {shape}, {self.bytes} bytes, but it holds {held}")
        rows = self.shape[0] if self.shape and not self._fortran else 1
        self._refuse_beyond_memory(self.bytes // max(1, rows))

    def rows(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the rows in order."""
        if self._fortran or not self.shape:
            yield from self.whole()
            return
        size = math.prod(self.shape[1:]) * self.dtype.itemsize
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as stream:
                _header(stream)
                for _ in range(self.shape[0]):
                    yield np.frombuffer(_exactly(stream, size), self.dtype).reshape(self.shape[1:])
        except _UNREADABLE as error:
            raise self.unreadable(error) from error

    def whole(self) -> npt.NDArray[Any]:
        """The whole array.

        Raises:
            UserError: as `rows`, or it does not fit into the memory.
        """
        self._refuse_beyond_memory(self.bytes)
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as stream:
                return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        except _UNREADABLE as error:
            raise self.unreadable(error) from error

    def _refuse_beyond_memory(self, size: int) -> None:
        if size > (limit := memory_limit()):
            raise UserError(
                f"rows that fit into {units.size(limit)} of memory, stored in C order to be read one by one",
                f"{self.name} in {self.path}, which takes {units.size(size)} at once",
                "Save numpy.ascontiguousarray of it, with one sample in each row.",
            )

    def unreadable(self, error: object) -> UserError:
        """The error that says that this array cannot be read."""
        return unreadable(self.path, f"{self.name}: {error}")


def member_names(path: Path) -> list[str]:
    """Names of what is in an .npz file, those of arrays end with ".npy".

    Raises:
        UserError: it is no .npz file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except Exception as error:
        raise unreadable(path, str(error)) from error


def unreadable(path: Path, reason: str) -> UserError:
    """The error that says that a file cannot be read."""
    return UserError(
        "an .npz file that can be read", f"{path}: {reason}", "Save it again with numpy.savez_compressed."
    )


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(stream)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            raise EOFError("the file ends early")
        data += more
    return data
