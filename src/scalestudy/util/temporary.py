"""Temporary folders of processes that may be killed at any time."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Yield a new temporary folder, and remove it at the end, unless a forked child gets there.

    Folders of this prefix whose processes on this machine were killed are removed first. A folder in use is
    locked; the kernel releases the lock when its process and those that it forked have ended.

    Raises:
        OSError: It cannot be created.
    """
    owner = os.getpid()
    # Another machine may share the folder, but not see the lock.
    named = f"{prefix}{os.uname().nodename}-"
    for left in Path(tempfile.gettempdir()).glob(f"{named}*"):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left, ignore_errors=True)
    with contextlib.ExitStack() as held:
        folder = _new_folder(held, named)
        try:
            yield folder
        finally:
            if os.getpid() == owner:
                shutil.rmtree(folder, ignore_errors=True)


def _new_folder(held: contextlib.ExitStack, prefix: str) -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        # On a file system without locks, no folder is taken for abandoned.
        with contextlib.suppress(OSError):
            held.enter_context(_locked(folder))
        # Else another process removed it before it was locked.
        if folder.exists():
            return folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of this user's folder.

    Raises:
        OSError: Another process holds it, or it is a link, a file, or cannot be opened or locked.
    """
    # Anyone may put a link into the folder of temporary files.
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)
