"""Writing files so that a reader, a kill at any moment, or a power cut never finds half of one."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Put a file with this content (text as UTF-8) in the place of `path`.

    Args:
        path: The file; its folder exists.
        content: What it is to hold.
        durable: Whether it has to outlive a power cut from here on; not for what soon has another.

    Raises:
        OSError: It cannot be written; `path` is as it was, and nothing else is left.
        UnicodeEncodeError: likewise, for a text that UTF-8 cannot hold.
    """
    data = content.encode() if isinstance(content, str) else content
    with replacing(path, durable=durable) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, beside: Path | None = None, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A temporary file beside `path`, which takes its place once the block has ended well.

    Args:
        path: The file to replace; its folder exists.
        beside: Name of the temporary file, for who must find what a kill has left; a new one when absent.
        durable: Whether it has to outlive a power cut once the block has ended.

    Raises:
        OSError: It cannot be written. After any error `path` is as it was, and nothing else is left.
    """
    if beside is None:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
    else:
        handle, temporary = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), beside
    try:
        with open(handle, "wb") as file:
            # mkstemp grants the owner alone; a study is shared like any other file of its user.
            os.fchmod(handle, 0o666 & ~_umask())
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable:
            sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def contents(path: Path, most: int = 2**28) -> bytes:
    """Bytes of a regular file. A pipe or a device in its place is refused, where reading would wait for ever.

    Args:
        path: The file.
        most: Bytes that it may have; by default more than any record has.

    Raises:
        OSError: It cannot be read, is none, or is longer.
    """
    with open_regular(path, most) as file:
        return file.read()


@contextmanager
def open_regular(path: Path, most: int = 2**28) -> Iterator[BufferedReader]:
    """The same, to be read in parts."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"its {found.st_size} bytes are more than {most}", str(path))
        with open(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def append_line(path: Path, line: str) -> None:
    """Append one line in one write, so that a kill can tear no line but the last; it outlives a power cut.

    A torn line left by a killed writer is closed first, so it cannot swallow this one.
    """
    with open(path, "ab+", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
        torn = end > 0 and file.read(1) != b"\n"
        file.write(("\n" * torn + line + "\n").encode())
        os.fsync(file.fileno())
    if not end:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have what was made, renamed or removed in a folder outlive a power cut.

    Some network file systems know no such thing of folders; what they promise of files has to do there.
    """
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    # The mask can only be read by setting it; /proc shows it without that race between threads.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
