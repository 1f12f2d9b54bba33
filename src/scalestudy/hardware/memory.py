"""How much memory this process may use, and which file systems that stand for memory are full."""

import contextlib
import errno
import os
import tempfile
from pathlib import Path

import psutil


def memory_limit() -> int:
    """Bytes that this process may use in all: the machine's memory or its cgroup's limit."""
    limits = [int(psutil.virtual_memory().total)]
    for folder in _cgroups():
        for name in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text()))
    return min(limits)


def oom_kills() -> int | None:
    """How many processes the kernel has killed for want of memory, in this process's cgroup so far.

    Version 2 counts in `memory.events`, version 1 in `memory.oom_control` (both since Linux 4.13); where
    there is no such cgroup, `/proc/vmstat` does for the whole machine. The kernel counts before it kills.
    None where it does not say.
    """
    files = [folder / name for folder in _cgroups() for name in ("memory.events", "memory.oom_control")]
    for file in (*files, Path("/proc/vmstat")):
        with contextlib.suppress(OSError):
            if (count := counted_oom_kills(file.read_text())) is not None:
                return count
    return None


def counted_oom_kills(text: str) -> int | None:
    """The number after `oom_kill` in one of the kernel's lists of counts; None without one."""
    for line in text.splitlines():
        match line.split():
            case ["oom_kill", number] if number.isdigit():
                return int(number)
    return None


def full_for(error: BaseException) -> str:
    """Which file systems are full, of an error that says "No space left on device" and not where; else ""."""
    if not isinstance(error, OSError) or error.errno != errno.ENOSPC or error.filename is not None:
        return ""
    full = []
    for folder in ("/dev/shm", tempfile.gettempdir(), os.getcwd()):
        with contextlib.suppress(OSError):
            if os.statvfs(folder).f_bavail == 0:
                full.append(folder)
    return f" ({', '.join(full)} {'is' if len(full) == 1 else 'are'} full)" if full else ""


def _cgroups() -> list[Path]:
    """Folders of this process's cgroups and of those around them, version 1 and 2."""
    found = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                root = Path("/sys/fs/cgroup", controllers)
                own = root / path.lstrip("/")
                found += [own, *(parent for parent in own.parents if parent.is_relative_to(root))]
    return found
