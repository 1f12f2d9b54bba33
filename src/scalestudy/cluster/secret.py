"""A secret by which the processes of a run authenticate each other, and which no other user can read.

The local launcher passes it in the variables of its workers, which only their owner can read. Elsewhere it is
in a file of the run folder, readable only for its owner, while the run is running.
"""

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.util.errors import RunError
from scalestudy.util.locks import foreign

SECRET = "SCALESTUDY_SECRET"
FILE = ".secret"
BYTES = 32
_FORM = re.compile(f"[0-9a-f]{{{2 * BYTES}}}")


def new_secret() -> str:
    """Return 256 random bits as 64 hexadecimal digits."""
    return secrets.token_hex(BYTES)


@contextlib.contextmanager
def secret_set(
    folder: Path, placement: Placement, variables: MutableMapping[str, str] = os.environ
) -> Iterator[None]:
    """Within the context, set the run's secret in `variables`, unless the launcher has set it.

    Args:
        folder: Folder of the run, seen by all of its nodes.
        placement: Placement of this process; a single process needs no secret.
        variables: Usually those of this process.

    Raises:
        RunError: If the folder cannot hold a file that only its owner can read, or holds an invalid one.
    """
    if placement.size == 1 or _FORM.fullmatch(variables.get(SECRET, "")):
        yield
        return
    variables[SECRET] = _shared(folder / FILE)
    try:
        yield
    finally:
        if placement.rank == 0:  # by now all have connected, or never will
            (folder / FILE).unlink(missing_ok=True)


def _shared(file: Path) -> str:
    """Return the secret in the file, which the first process writes and all others read."""
    try:
        with contextlib.suppress(FileExistsError):
            _write_first(file)
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with open(handle, encoding="ascii", errors="replace") as opened:
            reason, text = foreign(os.fstat(opened.fileno())), opened.read(2 * BYTES + 1)
    except OSError as error:
        reason, text = error.strerror or str(error), ""
    if not reason and not _FORM.fullmatch(text):
        reason = "something else is in it"
    if reason:
        raise RunError(
            f"a file that only you can read as {file}, by which the run's processes know each other",
            reason,
            "Remove it if it exists. Keep studies on a file system with owners and permissions.",
        )
    return text


def _write_first(file: Path) -> None:
    """Write a new secret atomically.

    Raises:
        FileExistsError: If another process was first.
    """
    handle, name = tempfile.mkstemp(prefix=f"{FILE}-", dir=file.parent)  # only its owner can access it
    try:
        with open(handle, "w", encoding="ascii") as opened:
            opened.write(new_secret())
        os.link(name, file)
    finally:
        os.unlink(name)
