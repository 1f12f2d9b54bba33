"""Memory that a loader uses on a node: its processes and the cached pages of its files, each page once."""

import ctypes
import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

_LIBC = ctypes.CDLL(None, use_errno=True)


def own_bytes(pids: Iterable[int]) -> int:
    """Memory in bytes of these processes and their descendants without pages of files; shared pages once.

    The kernel divides each page by the number of processes that share it (Pss).
    """
    total = 0
    for pid in pids:
        with suppress(psutil.Error):
            family = [
                psutil.Process(pid),
                *psutil.Process(pid).children(recursive=True),
            ]
            for process in family:
                with suppress(OSError):
                    total += _anonymous(
                        Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                    )
    return total


def _anonymous(rollup: str) -> int:
    fields = dict(line.split(":", 1) for line in rollup.splitlines() if ":" in line)
    return sum(
        1024 * int(fields[name].split()[0]) for name in ("Pss_Anon", "Pss_Shmem")
    )


def cached_bytes(files: Iterable[Path]) -> int:
    """Bytes of files in the page cache, from mincore(2)."""
    total = 0
    for file in files:
        size = file.stat().st_size
        if size:
            with (
                open(file, "rb") as stream,
                mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) as mapped,
            ):
                whole = np.frombuffer(mapped, np.uint8)
                pages = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
                where = ctypes.c_void_p(whole.ctypes.data)
                if _LIBC.mincore(
                    where, ctypes.c_size_t(size), ctypes.c_void_p(pages.ctypes.data)
                ):
                    raise OSError(ctypes.get_errno(), "mincore")
                total += int((pages & 1).sum()) * mmap.PAGESIZE
                del whole
    return total


def evict(files: Iterable[Path]) -> None:
    """Ask the kernel to evict the pages of files, so that a first epoch reads from the disk."""
    for file in files:
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
