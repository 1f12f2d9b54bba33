"""This process: the memory that it may use, and its end."""

import contextlib
import errno
import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import psutil


def memory_limit() -> int:
    """Return the bytes that this process may use: the machine's memory or its cgroup's limit."""
    limits = [int(psutil.virtual_memory().total)]
    for folder in _cgroups():
        for name in ("memory.max", "memory.limit_in_bytes"):
            # ValueError: "max", without a limit.
            with contextlib.suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text()))
    return min(limits)


def oom_kills() -> int | None:
    """Return how many processes of this process's cgroup the out-of-memory killer has ended so far.

    The count is in `memory.events` (cgroup version 2) or `memory.oom_control` (version 1), both since Linux
    4.13; without such a cgroup, that of the whole machine in `/proc/vmstat` is used. The kernel counts before
    it kills. None if there is no count.
    """
    files = []
    for folder in _cgroups():
        files += [folder / "memory.events", folder / "memory.oom_control"]
    for file in (*files, Path("/proc/vmstat")):
        with contextlib.suppress(OSError):
            count = count_oom_kills(file.read_text())
            if count is not None:
                return count
    return None


def count_oom_kills(text: str) -> int | None:
    """Return the number after `oom_kill` in a list of counts from the kernel; None without one."""
    for line in text.splitlines():
        match line.split():
            case ["oom_kill", number] if number.isdigit():
                return int(number)
    return None


def full_for(error: BaseException) -> str:
    """Name the full file systems for a "No space left on device" error without a file name; else ""."""
    if not isinstance(error, OSError) or error.errno != errno.ENOSPC:
        return ""
    if error.filename is not None:
        return ""
    full = []
    # Docker gives /dev/shm 64 MiB unless told otherwise.
    for folder in ("/dev/shm", tempfile.gettempdir(), os.getcwd()):
        with contextlib.suppress(OSError):
            # For users without privileges: a part is reserved for root.
            if os.statvfs(folder).f_bavail == 0:
                full.append(folder)
    if not full:
        return ""
    verb = "is" if len(full) == 1 else "are"
    return f" ({', '.join(full)} {verb} full)"


def _cgroups() -> list[Path]:
    """Return the folders of this process's cgroups and their parents, version 1 and 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        # Version 2 has one line, without names of controllers; version 1 has one for each.
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = Path("/sys/fs/cgroup", controllers)
        own = root / path.lstrip("/")
        found.append(own)
        for parent in own.parents:
            if parent.is_relative_to(root):
                found.append(parent)
    return found


def exit_at_once(code: int) -> NoReturn:
    """End this process at once: threads of a framework may still wait for peers that have already left."""
    # os._exit flushes nothing.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
