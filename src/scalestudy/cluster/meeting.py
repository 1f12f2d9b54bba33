"""Publish the addresses of rank 0 in a file of the run folder that only its owner can access.

The host name of rank 0 may not resolve on other nodes, or resolve to an address that they cannot reach.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.util.locks import foreign

MEETING = "SCALESTUDY_MEETING"
"""Variable with the path of the folder."""
FILE = ".addresses-{host}"
"""One file for each host of a rank 0, since a check has several groups of processes."""


@contextlib.contextmanager
def meeting_in(
    folder: Path, placement: Placement, variables: MutableMapping[str, str] = os.environ
) -> Iterator[None]:
    """Within the context, `publish` and `published` use this folder, which all nodes see."""
    if len(set(placement.hosts)) == 1:
        yield
        return
    variables[MEETING] = str(folder.absolute())
    try:
        yield
    finally:
        if placement.rank == 0:  # by now all have connected, or never will
            forget(folder)


def publish(addresses: Sequence[str], placement: Placement) -> None:
    """Write the addresses of this process, rank 0, to the folder, if there is one."""
    folder = os.environ.get(MEETING)
    if folder is None:
        return
    file = Path(folder) / FILE.format(host=placement.hosts[0])
    with contextlib.suppress(OSError):  # the others then use the host name
        handle, name = tempfile.mkstemp(prefix=f"{file.name}-", dir=folder)  # only its owner can access it
        with open(handle, "w", encoding="ascii") as opened:
            opened.write("\n".join(addresses))
        os.replace(name, file)


def published(placement: Placement) -> list[str]:
    """Return the addresses written by rank 0 so far; none if another user may have written the file."""
    folder = os.environ.get(MEETING)
    if folder is None:
        return []
    try:
        file = Path(folder) / FILE.format(host=placement.hosts[0])
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii") as opened:
            return [] if foreign(os.fstat(opened.fileno())) else opened.read().split()
    except OSError:
        return []


def forget(folder: Path) -> None:
    """Remove the files of addresses from a folder."""
    for file in folder.glob(FILE.format(host="*")):
        file.unlink(missing_ok=True)
