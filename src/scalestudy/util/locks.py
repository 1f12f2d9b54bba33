"""File locks, which the kernel always releases when their holder ends."""

import errno
import os
import shlex
import stat
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from scalestudy.util.errors import UserError
from scalestudy.util.files import umask

__all__ = ["Timeout", "take"]

NONE_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""Errors of file systems without locks."""


def take(path: Path, *, wait: bool = False) -> AbstractContextManager[object] | None:
    """Take the lock of a file until the context ends; return None on a file system without locks.

    The file and its content remain. Child processes do not inherit the lock. A new file can be opened only by
    those whom the umask lets write, such as the group of a shared folder, because anyone who can open a file
    for reading can hold its lock forever.

    Args:
        path: The file; created if it does not exist.
        wait: Whether to wait for the current holder.

    Raises:
        Timeout: If this process or another holds the lock.
        UserError: If it is a symbolic link, which is never followed, or no regular file.
        OSError: If the file cannot be opened.
    """
    _refuse_other_files(path)
    # filelock's fallback for file systems without locks leaves files behind when the holder is killed.
    lock = FileLock(
        path,
        blocking=wait,
        fallback_to_soft=False,
        mode=_lock_mode(),
    )
    try:
        return lock.acquire()
    except Timeout:
        raise
    except OSError as error:
        # Made in between.
        _refuse_other_files(path)
        if error.errno not in NONE_HERE:
            raise
        return None


def _refuse_other_files(path: Path) -> None:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if stat.S_ISREG(mode):
        return
    found = "a folder" if stat.S_ISDIR(mode) else "no regular file"
    if stat.S_ISLNK(mode):
        found = f"a symbolic link to {os.readlink(path)}"
    raise UserError(
        f"a lock file at {path}",
        found,
        f"Find out who made it (`ls -ld {shlex.quote(str(path))}`), and remove it: locks are regular files.",
    )


def _lock_mode() -> int:
    writers = 0o222 & ~umask()
    # Whoever may write may also read: the bit for it is the next higher one.
    readers = writers << 1
    return 0o600 | writers | readers
