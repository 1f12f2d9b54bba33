"""Files of a run folder that only its owner can access: the run's secret, and the addresses of rank 0."""

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.util.errors import RunError
from scalestudy.util.private_folder import foreign

SECRET = "SCALESTUDY_SECRET"
SECRET_FILE = ".secret"
BYTES = 32
_FORM = re.compile(f"[0-9a-f]{{{2 * BYTES}}}")
MEETING = "SCALESTUDY_MEETING"
"""Variable with the path of the folder."""
ADDRESSES = ".addresses-{host}"
"""One file for each host of a rank 0, since a check has several groups of processes."""


def new_secret() -> str:
    """Return 256 random bits as 64 hexadecimal digits."""
    return secrets.token_hex(BYTES)


@contextlib.contextmanager
def secret_set(
    folder: Path,
    placement: Placement,
    variables: MutableMapping[str, str] = os.environ,
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
    variables[SECRET] = _shared(folder / SECRET_FILE)
    try:
        yield
    finally:
        # By now all have connected, or never will.
        if placement.rank == 0:
            (folder / SECRET_FILE).unlink(missing_ok=True)


def _shared(file: Path) -> str:
    """Return the secret in the file, which the first process writes and all others read."""
    text = ""
    try:
        with contextlib.suppress(FileExistsError):
            _write_first(file)
        # Never through a link, behind which another user may have put the file.
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with open(handle, encoding="ascii", errors="replace") as opened:
            # Of the opened file: its name may lead to another by now.
            reason = foreign(os.fstat(opened.fileno()))
            text = opened.read(2 * BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
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
    # mkstemp's files can be accessed only by their owner.
    handle, name = tempfile.mkstemp(prefix=f"{SECRET_FILE}-", dir=file.parent)
    try:
        with open(handle, "w", encoding="ascii") as opened:
            opened.write(new_secret())
        # Unlike a rename, a link replaces nothing: all processes take the secret of the first. Unlike an
        # exclusive creation, it shows no file that is still empty.
        os.link(name, file)
    finally:
        os.unlink(name)


@contextlib.contextmanager
def meeting_in(
    folder: Path,
    placement: Placement,
    variables: MutableMapping[str, str] = os.environ,
) -> Iterator[None]:
    """Within the context, `publish` and `published` use this folder, which all nodes see."""
    # On one host, all meet at its loopback.
    if len(set(placement.hosts)) == 1:
        yield
        return
    variables[MEETING] = str(folder.absolute())
    try:
        yield
    finally:
        # By now all have connected, or never will.
        if placement.rank == 0:
            forget_addresses(folder)


def publish(addresses: Sequence[str], placement: Placement) -> None:
    """Write the addresses of this process, rank 0, to the folder, if there is one."""
    folder = os.environ.get(MEETING)
    if folder is None:
        return
    file = Path(folder) / ADDRESSES.format(host=placement.hosts[0])
    # Without the file, the others use the host name.
    with contextlib.suppress(OSError):
        # mkstemp's files can be accessed only by their owner.
        handle, name = tempfile.mkstemp(prefix=f"{file.name}-", dir=folder)
        with open(handle, "w", encoding="ascii") as opened:
            opened.write("\n".join(addresses))
        os.replace(name, file)


def published(placement: Placement) -> list[str]:
    """Return the addresses written by rank 0 so far; none if another user may have written the file."""
    folder = os.environ.get(MEETING)
    if folder is None:
        return []
    file = Path(folder) / ADDRESSES.format(host=placement.hosts[0])
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with open(handle, encoding="ascii") as opened:
            # The others connect to whatever stands in it.
            if foreign(os.fstat(opened.fileno())):
                return []
            return opened.read().split()
    except OSError:
        return []


def forget_addresses(folder: Path) -> None:
    """Remove the files of addresses from a folder."""
    for file in folder.glob(ADDRESSES.format(host="*")):
        file.unlink(missing_ok=True)
