"""Bytes that this node has sent and received: by the kernel's interfaces, and by InfiniBand ports."""

import contextlib
from pathlib import Path
from typing import NamedTuple

LOOPBACK = "lo"
INFINIBAND = "32"
"""Type of an interface for IP over InfiniBand (ARPHRD_INFINIBAND): what it moves, its port counts too."""
WORD = 4
"""Bytes of a unit in which InfiniBand ports count (IBTA, PortXmitData)."""


class Traffic(NamedTuple):
    """Bytes since the counters began; None where none can be read."""

    sent: int | None = None
    received: int | None = None
    loopback: int | None = None


class Network:
    """This process's network, which is looked at again and again.

    Counted are the hardware's interfaces, each once: of bonds, bridges and VLANs what lies below them. Where
    there is no hardware (a container, a namespace), those with nothing below them. RDMA does not pass the
    kernel, so its ports are added; an interface for IP over such a port is left to the port.

    Args:
        root: Where `/proc` and `/sys` are.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._counts, folder = root / "proc/self/net/dev", root / "sys/class/net"
        self._ports = sorted((root / "sys/class/infiniband").glob("*/ports/*/counters"))
        names = [each for each in self._interfaces() or () if each != LOOPBACK]
        lowest = [name for name in names if not any((folder / name).glob("lower_*"))]
        self._real = [name for name in lowest if (folder / name / "device").exists()] or lowest
        if self._ports:
            self._real = [name for name in self._real if _type(folder / name) != INFINIBAND]

    def look(self) -> Traffic:
        """What its counters say now; None where an interface or a port has not told."""
        counts = self._interfaces()
        if counts is None:
            return Traffic()
        loopback = counts.get(LOOPBACK)
        try:
            moved = [*(counts[name] for name in self._real), *map(_port, self._ports)]
        except (OSError, ValueError, KeyError):
            return Traffic(loopback=loopback and loopback[1])
        sent, received = sum(each[1] for each in moved), sum(each[0] for each in moved)
        return Traffic(sent, received, loopback and loopback[1])

    def _interfaces(self) -> dict[str, tuple[int, int]] | None:
        try:
            return _interfaces(self._counts.read_text())
        except (OSError, ValueError):
            return None


def _interfaces(text: str) -> dict[str, tuple[int, int]]:
    """Bytes received and sent, by interface."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        fields = rest.split()
        found[name.strip()] = int(fields[0]), int(fields[8])
    return found


def _port(counters: Path) -> tuple[int, int]:
    """The same of an InfiniBand port."""
    received, sent = (int((counters / f"port_{way}_data").read_text()) for way in ("rcv", "xmit"))
    return WORD * received, WORD * sent


def _type(folder: Path) -> str:
    with contextlib.suppress(OSError):
        return (folder / "type").read_text().strip()
    return ""
