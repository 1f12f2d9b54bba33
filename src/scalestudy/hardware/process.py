"""This process: ending with the one that started it, and what it has had stored and fetched."""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple


def end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends (Linux; elsewhere nothing)."""
    if sys.platform != "linux":
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)


class StorageBytes(NamedTuple):
    """Bytes since the process began; None where the kernel does not say."""

    read: int | None = None
    written: int | None = None


def storage_bytes(root: Path = Path("/")) -> StorageBytes:
    """What the kernel has counted of all its threads, pages of mapped files included."""
    try:
        lines = (root / "proc/self/io").read_text().splitlines()
        counts = dict(line.split(": ") for line in lines)
        return StorageBytes(int(counts["read_bytes"]), int(counts["write_bytes"]))
    except (OSError, ValueError, KeyError):
        return StorageBytes()
