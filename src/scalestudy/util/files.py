"""Write files atomically, so that neither a reader nor a kill or power failure ever sees half of one."""

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Replace the file `path` by one with this content (text as UTF-8).

    Args:
        path: The file; its folder exists.
        content: New content.
        durable: Whether the content must survive a power failure after the return. Not needed for files that
            are soon written again.

    Raises:
        OSError: If it cannot be written; `path` is unchanged, and no other file is left.
        UnicodeEncodeError: If UTF-8 cannot encode the text; likewise.
    """
    data = content.encode() if isinstance(content, str) else content
    with replacing(path, durable=durable) as file:
        file.write(data)


def without_following(path: str, flags: int) -> int:
    """Open a file but no link, as the `opener` of `open`; raises OSError (ELOOP) for a link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def make_inside(folder: Path) -> Path:
    """Create a folder inside one of ours unless it is there, and return it.

    Raises:
        OSError: If it cannot be created, or is a link, which would lead what is written elsewhere.
    """
    try:
        folder.mkdir()
    except FileExistsError:
        if folder.is_symlink():
            raise OSError(
                errno.ELOOP,
                "it is a symbolic link, which is not followed",
                str(folder),
            ) from None
    return folder


def touch(path: Path) -> None:
    """Create an empty file unless there is a file; raises OSError, also for a link."""
    os.close(without_following(str(path), os.O_WRONLY | os.O_CREAT))


@contextmanager
def replacing(
    path: Path,
    beside: Path | None = None,
    *,
    durable: bool = True,
) -> Iterator[BinaryIO]:
    """Yield a temporary file beside `path` that replaces it when the block ends without an error.

    Args:
        path: The file to replace; its folder exists.
        beside: Path of the temporary file, for callers that must find it after a kill; None for a new one.
        durable: Whether the content must survive a power failure after the block.

    Raises:
        OSError: If it cannot be written. After any error, `path` is unchanged, and no other file is left.
    """
    temporary = beside or path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    if beside is not None:
        # A killed writer may have left it, perhaps one of another user of the same group.
        beside.unlink(missing_ok=True)
    # Unlike mkstemp's, with the permissions of any new file: those that the umask and the folder give.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(handle, "wb") as file:
            yield file
            if durable:
                # Before the rename, else the name may survive a power failure without the content.
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable:
            sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        # A write to a full disk names no file.
        if isinstance(error, OSError) and not error.filename:
            error.filename = str(path)
        raise


def contents(path: Path, most: int = 2**28) -> bytes:
    """Read a regular file. A pipe or a device, on which reading could block forever, is refused.

    Args:
        path: The file.
        most: Maximum size in bytes; by default more than any record has.

    Raises:
        OSError: If it cannot be read, is no regular file, or is longer.
    """
    with open_regular(path, most) as file:
        return file.read()


@contextmanager
def open_regular(path: Path, most: int = 2**28) -> Iterator[BufferedReader]:
    """Open a regular file under the conditions of `contents`, to read it in parts."""
    # Opening a pipe would wait for a writer without O_NONBLOCK.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        # Of the opened file: its path may be another by now.
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        if found.st_size > most:
            raise OSError(
                errno.EFBIG,
                f"its {found.st_size} bytes are more than {most}",
                str(path),
            )
        with open(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def append_line(path: Path, line: str) -> None:
    """Append a line in a single write, so that a kill can leave only the last line incomplete.

    An incomplete last line, left by a killed writer, is ended first. A power failure may lose the line.
    """
    # Unbuffered: a buffer may be flushed in two writes, and a kill may come between them.
    with open(path, "ab+", buffering=0, opener=without_following) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
        torn = end > 0 and file.read(1) != b"\n"
        text = f"{line}\n"
        if torn:
            text = f"\n{line}\n"
        try:
            file.write(text.encode())
        except OSError as error:
            error.filename = str(path)
            raise


@contextmanager
def spare_space(folder: Path, size: int = 1 << 16) -> Iterator[None]:
    """Reserve `size` bytes on the disk of a folder until the block ends: room for a record if the disk fills.

    A file without a name holds them, so a kill leaves nothing. No error if the disk is already full, or the
    folder cannot be written to.
    """
    owner = os.getpid()
    with ExitStack() as held:
        with suppress(OSError):
            # posix_fallocate takes the blocks, which truncate alone would not.
            file = held.enter_context(tempfile.TemporaryFile(dir=folder))
            os.posix_fallocate(file.fileno(), 0, size)

            def free() -> None:
                # A forked process that ends first must not give back the space of its parent.
                if os.getpid() == owner:
                    file.truncate(0)

            # Truncated, since forked processes may hold the file, and with it the space.
            held.callback(free)
        yield


def sync_folder(folder: Path) -> None:
    """Make the entries created, renamed or removed in a folder survive a power failure.

    Some network file systems do not support this for folders; the error is ignored.
    """
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_folder(parent: Path, prefix: str) -> Path:
    """Make a new folder with a random name.

    Unlike mkdtemp's, it has the permissions of any new folder: those that the umask gives, and the group and
    the set-group-ID bit of a folder that a group shares.
    """
    folder = parent / f"{prefix}{secrets.token_hex(4)}"
    folder.mkdir()
    return folder


def umask() -> int:
    """Return the permissions that new files and folders of this process do not get."""
    # os.umask can only read the mask by setting it, a race between threads; /proc shows it.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
