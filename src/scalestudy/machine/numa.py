"""NUMA nodes, from the kernel's trees under /sys."""

from pathlib import Path

SYSTEM = Path("/sys/devices/system")
PCI = Path("/sys/bus/pci/devices")


def read_distances(system: Path = SYSTEM) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Numbers of the NUMA nodes, and [node][node] the firmware's distances (10 is local)."""
    folders = sorted((system / "node").glob("node[0-9]*"), key=lambda folder: int(folder.name[4:]))
    rows = [tuple(int(word) for word in text_of(folder / "distance").split()) for folder in folders]
    if not all(len(row) == len(rows) for row in rows):
        return (), ()
    return tuple(int(folder.name[4:]) for folder in folders), tuple(rows)


def of_pci_device(bus: str, devices: Path = PCI) -> tuple[int, ...]:
    """The NUMA node that the kernel gives to a PCI device ("00000000:07:00.0" is its "0000:07:00.0")."""
    domain, _, rest = bus.lower().partition(":")
    try:
        node = int((devices / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
    except (OSError, ValueError):
        return ()
    return (node,) if node >= 0 else ()


def text_of(file: Path, absent: str = "") -> str:
    """What one of the kernel's files says, or `absent` where there is no such file."""
    try:
        return file.read_text().strip()
    except OSError:
        return absent
