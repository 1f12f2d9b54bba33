"""File locks, which the kernel always releases when their holder ends."""

import errno
import os
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from scalestudy.util.errors import RunError

__all__ = ["Timeout", "take"]

NONE_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""Errors of file systems without locks."""


def take(path: Path, *, wait: bool = False) -> AbstractContextManager[object] | None:
    """Take the lock of a file until the context ends; return None on a file system without locks.

    The file and its content remain. Child processes do not inherit the lock. A new file can be accessed only
    by its owner, because anyone who can open a file for reading can hold its lock forever.

    Args:
        path: The file; created if it does not exist.
        wait: Whether to wait for the current holder.

    Raises:
        Timeout: If this process or another holds the lock.
        RunError: If the file is a symbolic link, which is never followed.
        OSError: If the file cannot be opened.
    """
    # filelock's fallback for file systems without locks leaves files behind when the holder is killed.
    lock = FileLock(path, blocking=wait, fallback_to_soft=False, mode=0o600)
    try:
        return lock.acquire()
    except Timeout:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RunError(
                f"a lock file at {path}",
                f"a symbolic link to {os.readlink(path)}",
                "Remove it, and find out who made it (`ls -l`): Scalestudy's locks are never links.",
            ) from error
        if error.errno not in NONE_HERE:
            raise
        return None
