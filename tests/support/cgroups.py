"""A memory cgroup for a test, where the system allows one."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
LIMIT = 400 << 20
"""Bytes."""
FILES = {"memory.limit_in_bytes": ROOT / "memory", "memory.max": ROOT}
"""Name of the limit in cgroup version 1 and in version 2, and the folder of the groups."""


@contextlib.contextmanager
def limited(name: str, bytes_: int = LIMIT) -> Iterator[tuple[str, ...]]:
    """Yield a command prefix that runs a command in a new cgroup limited to `bytes_`.

    Raises:
        OSError: No such cgroup can be created.
    """
    group = _made(name, bytes_)
    try:
        yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    finally:
        deadline = time.monotonic() + 600
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        group.rmdir()


def _made(name: str, bytes_: int) -> Path:
    for file, root in FILES.items():
        if not root.is_dir():
            continue
        group = root / name
        group.mkdir()
        if (group / file).exists():
            (group / file).write_text(str(bytes_))
            return group
        group.rmdir()
    raise OSError("no cgroup with a limit of memory can be made")
