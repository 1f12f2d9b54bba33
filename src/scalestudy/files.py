"""Writing files so that a reader, or a kill at any moment, never finds half of one."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: str | bytes) -> None:
    """Put a file with this content (text as UTF-8) in the place of `path`.

    Raises:
        OSError: It cannot be written; `path` is as it was, and nothing else is left.
        UnicodeEncodeError: likewise, for a text that UTF-8 cannot hold.
    """
    data = content.encode() if isinstance(content, str) else content
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, beside: Path | None = None) -> Iterator[BinaryIO]:
    """A temporary file beside `path`, which takes its place once the block has ended well.

    Args:
        path: The file to replace; its folder exists.
        beside: Name of the temporary file, for who must find what a kill has left; a new one when absent.

    Raises:
        OSError: It cannot be written. After any error `path` is as it was, and nothing else is left.
    """
    if beside is None:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
    else:
        handle, temporary = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), beside
    try:
        with open(handle, "wb") as file:
            # mkstemp grants the owner alone; a study is shared like any other file of its user.
            os.fchmod(handle, 0o666 & ~_umask())
            yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def odd_kind(path: Path) -> str | None:
    """What a path is that is neither folder nor plain file, to open which may wait for ever; else None."""
    kinds = {
        stat.S_ISFIFO: "a named pipe", stat.S_ISSOCK: "a socket",
        stat.S_ISCHR: "a device", stat.S_ISBLK: "a device",
    }  # fmt: skip
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    return next((kind for matches, kind in kinds.items() if matches(mode)), None)


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
