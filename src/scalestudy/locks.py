"""One holder at a time: locks on files, which the kernel lets go of however their holder ends."""

import errno
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["Timeout", "take"]

NONE_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""What file systems without locks answer."""


def take(path: Path, *, wait: bool = False) -> AbstractContextManager[object] | None:
    """The lock of this file, taken until the context ends; None on a file system without locks.

    The file stays behind, with what was written to it; children that are started do not inherit the lock.

    Args:
        path: The file; made if need be.
        wait: Whether to wait for who holds it.

    Raises:
        Timeout: Another holds it, in this process or another.
        OSError: The file cannot be opened.
    """
    # Where there are no locks, filelock's own way out leaves files that outlive a killed holder.
    lock = FileLock(path, blocking=wait, fallback_to_soft=False)
    try:
        return lock.acquire()
    except Timeout:
        raise
    except OSError as error:
        if error.errno not in NONE_HERE:
            raise
        return None
