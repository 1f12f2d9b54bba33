"""Reading an array of an .npz file row by row, so that a large one never lies in memory."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from scalestudy.errors import UserError

_UNREADABLE = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zipfile.zlib.error)  # type: ignore[attr-defined]


class NpzArray:
    """One array of an .npz file: its `shape` and `dtype` from its header, its rows on demand."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        try:
            with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
                self.shape, self._fortran, self.dtype = _header(stream)
        except _UNREADABLE as error:
            raise self.unreadable(error) from error
        if self.dtype.hasobject:
            raise UserError(
                "arrays of numbers",
                f"{name} in {path}, an array of Python objects",
                "Save it as one array of numbers; objects are never unpickled, since that runs their code.",
            )

    def rows(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the rows in order."""
        if self._fortran or not self.shape:
            yield from self.whole()
            return
        size = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as stream:
                _header(stream)
                for _ in range(self.shape[0]):
                    yield np.frombuffer(_exactly(stream, size), self.dtype).reshape(self.shape[1:])
        except _UNREADABLE as error:
            raise self.unreadable(error) from error

    def whole(self) -> npt.NDArray[Any]:
        """The whole array."""
        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                return np.asarray(arrays[self.name])
        except _UNREADABLE as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: Exception) -> UserError:
        """The error that says that this array cannot be read."""
        return unreadable(self.path, f"{self.name}: {error}")


def array_names(path: Path) -> list[str]:
    """Names of the arrays in an .npz file.

    Raises:
        UserError: it is no .npz file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    except _UNREADABLE as error:
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
