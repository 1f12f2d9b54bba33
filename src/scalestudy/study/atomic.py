"""Writing files so that a reader, or a kill at any moment, never finds half of one."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to a temporary file beside `path`, then put it in its place."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        # mkstemp grants the owner alone; a study is shared like any other file of its user.
        os.fchmod(handle, 0o666 & ~_umask())
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def append_line(path: Path, line: str) -> None:
    """Append one line in one write, so that a kill can tear no line but the last.

    A torn line left by a killed writer is closed first, so it cannot swallow this one.
    """
    with open(path, "ab+", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
        torn = end > 0 and file.read(1) != b"\n"
        file.write(("\n" * torn + line + "\n").encode())


def _umask() -> int:
    # The mask can only be read by setting it; /proc shows it without that race between threads.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
