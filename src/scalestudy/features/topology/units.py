"""What a node is made of, and how close its parts are to each other: plain data."""

from collections.abc import Sequence
from dataclasses import dataclass

GPU_LINKS = {
    "NV#": "# NVLinks between them",
    "PIX": "at most one PCIe bridge between them",
    "PXB": "several PCIe bridges, but not the CPU's host bridge",
    "PHB": "the CPU's PCIe host bridge between them",
    "NODE": "several host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes (UPI, Infinity Fabric)",
}
"""Names of links as `nvidia-smi topo -m` gives them, nearest first."""
CPU_LINKS = {
    "L3": "one last-level cache",
    "NODE": "memory of one NUMA node, no cache",
    "PKG": "one package, several NUMA nodes",
    "SYS": "the link between packages",
}
"""What two groups of cores share at best, nearest first."""
SELF = "X"


@dataclass(frozen=True)
class Unit:
    """A GPU, or a group of cores.

    Attributes:
        name: Short and unlike the others': "GPU 0", "core 3", "L3 1", "NUMA 0".
        detail: What it is, for people.
        cpus: Logical CPUs of the group, or those near the GPU.
        numa: NUMA nodes of these.
        uuid: Of a GPU, where it is known.
    """

    name: str
    detail: str
    cpus: tuple[int, ...]
    numa: tuple[int, ...]
    uuid: str = ""


@dataclass(frozen=True)
class Topology:
    """The units of a node and the links between them.

    Attributes:
        kind: "gpu" or "cpu".
        units: What it is made of.
        links: [unit][unit] names of links, of `GPU_LINKS` or `CPU_LINKS`; "X" on the diagonal.
        distances: [NUMA node][NUMA node] as the firmware states them (10 is local); empty if unknown.
        numa: Numbers of the NUMA nodes, in the order of `distances`.
        remarks: What else there is to say: packages, cores, threads of a core, caches.
    """

    kind: str
    units: tuple[Unit, ...]
    links: tuple[tuple[str, ...], ...]
    numa: tuple[int, ...] = ()
    distances: tuple[tuple[int, ...], ...] = ()
    remarks: tuple[str, ...] = ()

    def legend(self) -> dict[str, str]:
        """The links that occur, nearest first, with what they are."""
        seen = {kind_of(link) for row in self.links for link in row}
        known = GPU_LINKS if self.kind == "gpu" else CPU_LINKS
        return {name: text for name, text in known.items() if name in seen}


def kind_of(link: str) -> str:
    """Name of a link's kind: "NV#" for "NV4" and its like, else the link itself."""
    return "NV#" if link.startswith("NV") else link


def ranges(numbers: Sequence[int]) -> str:
    """`0-3,8` for 0, 1, 2, 3 and 8, as the kernel writes sets of CPUs."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of the kernel's `0-3,8`; empty for an empty text.

    Raises:
        ValueError: The text is nothing like that.
    """
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if part:
            found += range(int(first), int(last or first) + 1)
    return tuple(found)
