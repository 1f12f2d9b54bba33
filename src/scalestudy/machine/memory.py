"""How much memory this process may use."""

import contextlib
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
