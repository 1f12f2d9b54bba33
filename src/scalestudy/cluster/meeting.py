"""Where rank 0 of a run is reached: its addresses, in a file of the run's folder that is its owner's alone.

A name of rank 0's host need not resolve on the other nodes, or not to an address that they reach.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.util.private_dir import foreign

MEETING = "SCALESTUDY_MEETING"
"""Variable that holds the folder."""
FILE = ".addresses-{host}"
"""Of each host whose processes may be a rank 0: of a run, or of one of a check's many meetings."""


@contextlib.contextmanager
def meeting_in(
    folder: Path, placement: Placement, variables: MutableMapping[str, str] = os.environ
) -> Iterator[None]:
    """Within, rank 0 says in this folder, which all nodes see, how it is reached."""
    if len(set(placement.hosts)) == 1:
        yield
        return
    variables[MEETING] = str(folder.absolute())
    try:
        yield
    finally:
        if placement.rank == 0:  # all have met by now, or never will
            forget(folder)


def publish(addresses: Sequence[str], placement: Placement) -> None:
    """Say that rank 0, which this process is, is reached at one of these; nothing without a folder."""
    folder = os.environ.get(MEETING)
    if folder is None:
        return
    file = Path(folder) / FILE.format(host=placement.hosts[0])
    with contextlib.suppress(OSError):  # the others then go by the name of the host
        handle, name = tempfile.mkstemp(prefix=f"{file.name}-", dir=folder)  # for its owner alone
        with open(handle, "w", encoding="ascii") as opened:
            opened.write("\n".join(addresses))
        os.replace(name, file)


def published(placement: Placement) -> list[str]:
    """The addresses of rank 0's host that are written by now; none that another user may have written."""
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
    """Remove what was told in a folder."""
    for file in folder.glob(FILE.format(host="*")):
        file.unlink(missing_ok=True)
