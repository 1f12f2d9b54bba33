"""CPUs, caches and NUMA nodes, from the kernel's tree under /sys/devices/system."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from scalestudy import units
from scalestudy.features.topology.units import SELF, Topology, Unit, numbers, ranges
from scalestudy.machine.numa import SYSTEM, read_distances, text_of

MOST_UNITS = 16
"""Units of a matrix that can still be read; with more, the next larger groups are shown."""


@dataclass(frozen=True)
class Cpu:
    """One logical CPU.

    Attributes:
        number: As the kernel counts it.
        core: The logical CPUs of its core, itself included (SMT).
        cache: The logical CPUs that share its last-level cache.
        cache_bytes: Size of that cache; 0 if unknown.
        package: Number of its package.
        node: Number of its NUMA node.
    """

    number: int
    core: tuple[int, ...]
    cache: tuple[int, ...]
    cache_bytes: int
    package: int
    node: int


def cpu_topology(granted: Collection[int], system: Path = SYSTEM) -> Topology:
    """The CPUs of this machine that are granted, in the finest groups that a matrix can show.

    Args:
        granted: Logical CPUs that may be used.
        system: The kernel's tree.
    """
    cpus = [cpu for cpu in read_cpus(system) if cpu.number in granted]
    nodes, distances = read_distances(system)
    return arrange(cpus, nodes, distances)


def arrange(
    cpus: list[Cpu], nodes: tuple[int, ...] = (), distances: tuple[tuple[int, ...], ...] = ()
) -> Topology:
    """Cores, or where they are too many last-level caches, NUMA nodes or packages, and their links."""
    for groups in (_cores(cpus), _caches(cpus), _nodes(cpus), _packages(cpus)):
        if len(groups) <= MOST_UNITS:
            break
    members = list(groups.values())
    units = tuple(_unit(name, group) for name, group in groups.items())
    links = tuple(tuple(SELF if a is b else _link(a, b) for b in members) for a in members)
    return Topology("cpu", units, links, nodes, distances, _remarks(cpus))


def read_cpus(system: Path = SYSTEM) -> list[Cpu]:
    """All logical CPUs that are switched on, in the kernel's order."""
    folders = sorted(
        (folder for folder in (system / "cpu").glob("cpu[0-9]*") if folder.name[3:].isdecimal()),
        key=lambda folder: int(folder.name[3:]),
    )
    of_node = {
        cpu: int(folder.name[4:])
        for folder in (system / "node").glob("node[0-9]*")
        for cpu in numbers(text_of(folder / "cpulist"))
    }
    return [
        _cpu(folder, of_node.get(int(folder.name[3:]), 0))
        for folder in folders
        if text_of(folder / "online", "1") == "1"
    ]


def _cpu(folder: Path, node: int) -> Cpu:
    number = int(folder.name[3:])
    level, size = 0, ""
    cache: tuple[int, ...] = (number,)
    for index in sorted(folder.glob("cache/index[0-9]*")):
        # Anything below the third level is a core's own, whatever a virtual machine says.
        found = int(text_of(index / "level", "0"))
        if found >= max(3, level):
            level = found
            cache, size = numbers(text_of(index / "shared_cpu_list", str(number))), text_of(index / "size")
    topology = folder / "topology"
    siblings = text_of(topology / "core_cpus_list") or text_of(topology / "thread_siblings_list", str(number))
    package = int(text_of(topology / "physical_package_id", "0"))
    return Cpu(number, numbers(siblings), cache, _bytes(size), max(0, package), node)


def _bytes(size: str) -> int:
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    digits = size.rstrip("KMG")
    return int(digits) * units.get(size[-1:], 1) if digits.isdecimal() else 0


def _cores(cpus: list[Cpu]) -> dict[str, list[Cpu]]:
    # The number of a core's first CPU is what taskset and Slurm's bindings speak of.
    return {f"core {group[0].number}": group for group in _grouped(cpus, lambda cpu: cpu.core)}


def _caches(cpus: list[Cpu]) -> dict[str, list[Cpu]]:
    groups = _grouped(cpus, lambda cpu: cpu.cache)
    return {f"L3 {index}": group for index, group in enumerate(groups)}


def _nodes(cpus: list[Cpu]) -> dict[str, list[Cpu]]:
    return {f"NUMA {group[0].node}": group for group in _grouped(cpus, lambda cpu: cpu.node)}


def _packages(cpus: list[Cpu]) -> dict[str, list[Cpu]]:
    return {f"package {group[0].package}": group for group in _grouped(cpus, lambda cpu: cpu.package)}


def _grouped(cpus: list[Cpu], key: Callable[[Cpu], object]) -> list[list[Cpu]]:
    groups: dict[object, list[Cpu]] = {}
    for cpu in cpus:
        groups.setdefault(key(cpu), []).append(cpu)
    return list(groups.values())


def _unit(name: str, group: list[Cpu]) -> Unit:
    numbers_of = tuple(cpu.number for cpu in group)
    node = sorted({cpu.node for cpu in group})
    cores = len({cpu.core for cpu in group})
    size = group[0].cache_bytes
    cache = (
        f", {units.size(size)} last-level cache" if size and len({cpu.cache for cpu in group}) == 1 else ""
    )
    text = f"package {group[0].package}, {cores} core{'s' * (cores > 1)}{cache}"
    return Unit(name, text, numbers_of, tuple(node))


def _link(one: list[Cpu], other: list[Cpu]) -> str:
    a, b = one[0], other[0]
    if a.package != b.package:
        return "SYS"
    if a.node != b.node:
        return "PKG"
    return "L3" if a.cache == b.cache and len(a.cache) > 1 else "NODE"


def _remarks(cpus: list[Cpu]) -> tuple[str, ...]:
    if not cpus:
        return ()
    counts = {
        "package": len({cpu.package for cpu in cpus}),
        "NUMA node": len({cpu.node for cpu in cpus}),
        "last-level cache": len({cpu.cache for cpu in cpus}),
        "core": len({cpu.core for cpu in cpus}),
        "logical CPU": len(cpus),
    }
    threads = max(len(cpu.core) for cpu in cpus)
    counted = ", ".join(f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items())
    smt = "one thread a core" if threads == 1 else f"{threads} threads a core (SMT)"
    return (f"granted: {counted} ({ranges([cpu.number for cpu in cpus])})", smt)
