"""GPUs and the links between them: NVML's answers as plain data, and the matrix that follows from them."""

import dataclasses
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.features.topology.units import SELF, Topology, Unit
from scalestudy.machine.devices import Gpu, opened, visible_gpus
from scalestudy.machine.numa import SYSTEM, read_distances
from scalestudy.machine.nvml import Handle, Library, ask, library, text

ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""Names of NVML's levels of the nearest common ancestor of two devices on PCIe (nvmlGpuTopologyLevel_t)."""
FARTHEST = 50
SWITCH = "switch"


class Links(NamedTuple):
    """What NVML says of the links of some GPUs.

    Attributes:
        nvlinks: By index of a GPU, for each of its NVLinks that is up, the PCI address of the GPU at the
            other end, or "switch".
        ancestors: Level of the nearest common PCIe ancestor of each pair, by their indices, the lower first;
            pairs that NVML does not know are not in it.
    """

    nvlinks: Mapping[int, Sequence[str]]
    ancestors: Mapping[tuple[int, int], int]


def gpu_topology(environment: Mapping[str, str] = os.environ, system: Path = SYSTEM) -> Topology | None:
    """The GPUs that a process with these variables may use, or None where there is no driver or no GPU."""
    read = read_links({gpu.index for gpu in visible_gpus(environment)})
    if read is None:
        return None
    nodes, distances = read_distances(system)
    return dataclasses.replace(arrange_gpus(*read), numa=nodes, distances=distances)


def arrange_gpus(gpus: Sequence[Gpu], links: Links) -> Topology:
    """The matrix of GPUs, named as `nvidia-smi topo -m` names links.

    Args:
        gpus: What NVML says of each, in the order of their indices.
        links: What NVML says of their links. A pair that it does not know is shown as the farthest.
    """
    units = tuple(
        Unit(f"GPU {gpu.index}", f"{gpu.name}, {gpu.bus}", gpu.cpus, gpu.numa, gpu.uuid) for gpu in gpus
    )
    unknown = [
        f"NVML does not say what is between GPU {a.index} and GPU {b.index}: shown as SYS"
        for a in gpus
        for b in gpus
        if a.index < b.index
        and (a.index, b.index) not in links.ancestors
        and not _nvlinks_between(a, b, links)
    ]
    rows = tuple(tuple(_link(a, b, links) for b in gpus) for a in gpus)
    return Topology("gpu", units, rows, remarks=tuple(unknown))


def read_links(indices: Collection[int]) -> tuple[list[Gpu], Links] | None:
    """What NVML says of these GPUs and their links; None where there is no driver, or none of them."""
    nvml = library()
    found = [] if nvml is None else [(gpu, handle) for gpu, handle in opened(nvml) if gpu.index in indices]
    if nvml is None or not found:
        return None
    levels = {
        (a.index, b.index): ask(nvml, "nvmlDeviceGetTopologyCommonAncestor", one, other)
        for a, one in found
        for b, other in found
        if a.index < b.index
    }
    links = Links(
        {gpu.index: _nvlinks(nvml, handle) for gpu, handle in found},
        {pair: int(level) for pair, level in levels.items() if level is not None},
    )
    return [gpu for gpu, _ in found], links


def _link(one: Gpu, other: Gpu, links: Links) -> str:
    if one.index == other.index:
        return SELF
    count = _nvlinks_between(one, other, links)
    if count:
        return f"NV{count}"
    pair = min(one.index, other.index), max(one.index, other.index)
    return ANCESTORS.get(links.ancestors.get(pair, FARTHEST), "SYS")


def _nvlinks_between(one: Gpu, other: Gpu, links: Links) -> int:
    ends, others = Counter(links.nvlinks.get(one.index, ())), Counter(links.nvlinks.get(other.index, ()))
    return ends[other.bus] or min(ends[SWITCH], others[SWITCH])


def _nvlinks(nvml: Library, handle: Handle) -> tuple[str, ...]:
    found = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        # A card may have fewer links, or none.
        if ask(nvml, "nvmlDeviceGetNvLinkState", handle, link) != nvml.NVML_FEATURE_ENABLED:
            continue
        remote = ask(nvml, "nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
        if remote is not None:
            found.append(SWITCH if _is_switch(nvml, handle, link) else text(remote.busId).upper())
    return tuple(found)


def _is_switch(nvml: Library, handle: Handle, link: int) -> bool:
    kind = ask(nvml, "nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
    return kind is not None and kind == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
