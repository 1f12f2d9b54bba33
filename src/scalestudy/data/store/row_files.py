"""Files of a prepared set: its new folder, and arrays written row by row."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

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


class ArrayFile:
    """Writes `NAME.npy`: first the header, then the bytes of rows.

    The constructor and all methods raise OSError if the folder is not writable or full.
    """

    def __init__(self, folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path = folder / f"{name}.npy"
        self._stream = open(self.path, "wb")  # noqa: SIM115 (closed by `finish` or `close`)
        self._digest = hashlib.sha256()
        write_header(self, shape, dtype)

    def write(self, data: Any) -> None:
        """Write bytes, or a contiguous buffer."""
        self._digest.update(data)
        self._stream.write(data)

    def finish(self) -> str:
        """Sync the file to disk, close it, and return its SHA-256."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file, complete or not."""
        self._stream.close()
