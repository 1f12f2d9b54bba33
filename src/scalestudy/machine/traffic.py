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


def look(root: Path = Path("/")) -> Traffic:
    """What the counters of this process's network say now.

    Counted are the hardware's interfaces, each once: of bonds, bridges and VLANs what lies below them. Where
    there is no hardware (a container, a namespace), those with nothing below them. RDMA does not pass the
    kernel, so its ports are added; an interface for IP over such a port is left to the port.
    """
    try:
        counts = _interfaces((root / "proc/self/net/dev").read_text())
    except (OSError, ValueError):
        return Traffic()
    folder, loopback = root / "sys/class/net", counts.pop(LOOPBACK, None)
    ports = _ports(root / "sys/class/infiniband")
    lowest = [name for name in counts if not any((folder / name).glob("lower_*"))]
    real = [name for name in lowest if (folder / name / "device").exists()] or lowest
    if ports:
        real = [name for name in real if _type(folder / name) != INFINIBAND]
    moved = [*(counts[name] for name in real), *ports]
    return Traffic(
        sum(sent for _, sent in moved), sum(received for received, _ in moved), loopback and loopback[1]
    )


def _interfaces(text: str) -> dict[str, tuple[int, int]]:
    """Bytes received and sent, by interface."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        fields = rest.split()
        found[name.strip()] = int(fields[0]), int(fields[8])
    return found


def _ports(folder: Path) -> list[tuple[int, int]]:
    """The same of each InfiniBand port."""
    found = []
    for counters in sorted(folder.glob("*/ports/*/counters")):
        with contextlib.suppress(OSError, ValueError):
            received, sent = (int((counters / f"port_{way}_data").read_text()) for way in ("rcv", "xmit"))
            found.append((WORD * received, WORD * sent))
    return found


def _type(folder: Path) -> str:
    with contextlib.suppress(OSError):
        return (folder / "type").read_text().strip()
    return ""
