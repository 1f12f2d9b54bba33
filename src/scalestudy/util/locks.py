"""One holder at a time: locks on files, which the kernel lets go of however their holder ends."""

import errno
import os
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

from scalestudy.util.errors import RunError

__all__ = ["Timeout", "take"]

NONE_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""What file systems without locks answer."""


def take(path: Path, *, wait: bool = False) -> AbstractContextManager[object] | None:
    """The lock of this file, taken until the context ends; None on a file system without locks.

    The file stays behind, with what was written to it; children that are started do not inherit the lock.

    Args:
        path: The file; made if need be.
        wait: Whether to wait for who holds it.

    A new file is its owner's alone: whoever can open a file for reading can hold its lock, and for ever.

    Raises:
        Timeout: Another holds it, in this process or another.
        RunError: There is a symbolic link, which is never followed.
        OSError: The file cannot be opened.
    """
    # Where there are no locks, filelock's own way out leaves files that outlive a killed holder.
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
