"""Kernel counters: network traffic, this process's storage traffic, and the energy of processors."""

import contextlib
from pathlib import Path
from typing import NamedTuple

LOOPBACK = "lo"
INFINIBAND = "32"
"""Type of an interface for IP over InfiniBand (ARPHRD_INFINIBAND), whose traffic its port counts too."""
WORD = 4
"""Bytes per unit of InfiniBand port counters (IBTA, PortXmitData)."""


class Traffic(NamedTuple):
    """Bytes since the counters started; None if a counter cannot be read."""

    sent: int | None = None
    received: int | None = None
    loopback: int | None = None


class Network:
    """Counters of this process's network, for repeated reading.

    Each hardware interface is counted once: for bonds, bridges and VLANs, only the underlying interfaces.
    Without hardware interfaces (a container, a namespace), all lowest interfaces are counted. RDMA bypasses
    the kernel, so the counters of InfiniBand ports are added, and interfaces for IP over such ports are left
    out. `root` is the folder of `/proc` and `/sys`.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._counts, folder = root / "proc/self/net/dev", root / "sys/class/net"
        self._ports = sorted((root / "sys/class/infiniband").glob("*/ports/*/counters"))
        names = [name for name in self._interfaces() or () if name != LOOPBACK]
        lowest = [name for name in names if not any((folder / name).glob("lower_*"))]
        self._real = [name for name in lowest if (folder / name / "device").exists()] or lowest
        if self._ports:
            self._real = [name for name in self._real if _type(folder / name) != INFINIBAND]

    def look(self) -> Traffic:
        """Read the counters; values are None if an interface or a port cannot be read."""
        counts = self._interfaces()
        if counts is None:
            return Traffic()
        loopback = counts.get(LOOPBACK)
        try:
            moved = [*(counts[name] for name in self._real), *map(_port, self._ports)]
        except (OSError, ValueError, KeyError):
            return Traffic(loopback=loopback and loopback[1])
        received, sent = map(sum, zip(*moved, strict=True)) if moved else (0, 0)
        return Traffic(sent, received, loopback and loopback[1])

    def _interfaces(self) -> dict[str, tuple[int, int]] | None:
        try:
            return _interfaces(self._counts.read_text())
        except (OSError, ValueError):
            return None


def _interfaces(text: str) -> dict[str, tuple[int, int]]:
    """Parse bytes received and sent, by interface."""
    counts = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        fields = rest.split()
        counts[name.strip()] = int(fields[0]), int(fields[8])
    return counts


def _port(counters: Path) -> tuple[int, int]:
    """Return bytes received and sent by an InfiniBand port."""
    received, sent = (int((counters / f"port_{way}_data").read_text()) for way in ("rcv", "xmit"))
    return WORD * received, WORD * sent


def _type(folder: Path) -> str:
    with contextlib.suppress(OSError):
        return (folder / "type").read_text().strip()
    return ""


POWERCAP = Path("/sys/class/powercap")
PACKAGES = "intel-rapl:[0-9]*"
"""Also AMD's packages. `intel-rapl-mmio:…` would count the same packages again."""


class _Package:
    """The energy counter of a package, continued when it wraps at `max_energy_range_uj`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range = int((folder / "max_energy_range_uj").read_text())
        self._last = self._read()
        self._microjoules = 0

    def look(self) -> float:
        now = self._read()
        self._microjoules += now - self._last if now >= self._last else self._range - self._last + now
        self._last = now
        return self._microjoules / 1e6

    def _read(self) -> int:
        return int(self._file.read_text())


class CpuEnergy:
    """The energy that all packages have drawn since this object was created.

    A package's counter wraps after some minutes at full power (65 or 262 kJ), so `look` must be called more
    often than that. After an error the energy stays unknown, since a counter may have wrapped meanwhile;
    `reason` then says why. It is "" as long as all packages can be read.
    """

    def __init__(self, root: Path = POWERCAP) -> None:
        self.reason = ""
        try:
            folders = [folder for folder in sorted(root.glob(PACKAGES)) if _is_package(folder)]
            self._packages = [_Package(folder) for folder in folders]
        except (OSError, ValueError) as error:
            self._packages, self.reason = [], _why(error)
        if not self._packages:
            self.reason = (
                self.reason or f"this machine has no energy counters ({root} has no package of RAPL)"
            )

    def look(self) -> float | None:
        """Return the joules so far; None if a package could not be read."""
        if self.reason:
            return None
        try:
            return sum(package.look() for package in self._packages)
        except (OSError, ValueError) as error:
            self.reason = _why(error)
            return None


def _is_package(folder: Path) -> bool:
    """Whether a folder is a package, rather than a part of one ("intel-rapl:0:1") or the whole platform."""
    return folder.name.count(":") == 1 and (folder / "name").read_text().startswith("package")


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, PermissionError):
        return f"{error.filename} can be read only by root; the site can make it readable"
    return f"{getattr(error, 'filename', None) or 'a counter'} cannot be read: {error}"


class StorageBytes(NamedTuple):
    """Bytes since the process started; None if the kernel does not provide them."""

    read: int | None = None
    written: int | None = None


def storage_bytes(root: Path = Path("/")) -> StorageBytes:
    """Read the counters of all threads of this process, which include pages of mapped files."""
    try:
        lines = (root / "proc/self/io").read_text().splitlines()
        counts = dict(line.split(": ") for line in lines)
        return StorageBytes(int(counts["read_bytes"]), int(counts["write_bytes"]))
    except (OSError, ValueError, KeyError):
        return StorageBytes()
