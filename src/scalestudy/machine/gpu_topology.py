"""GPUs and the links between them: NVML's answers as plain data, and the matrix that follows from them."""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalestudy.machine.cpu_topology import SYSTEM, read_distances
from scalestudy.machine.topology import SELF, Topology, Unit

ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""Names of NVML's levels of the nearest common ancestor of two devices on PCIe (nvmlGpuTopologyLevel_t)."""
SWITCH = "switch"


@dataclass(frozen=True)
class Gpu:
    """What NVML says of one GPU.

    Attributes:
        index: As NVML counts it.
        name: Product.
        bus: PCI address, "00000000:07:00.0".
        cpus: Logical CPUs near it.
        numa: NUMA nodes near it.
        nvlinks: For each NVLink that is up, the PCI address of the GPU at its other end, or "switch".
    """

    index: int
    name: str
    bus: str
    cpus: tuple[int, ...]
    numa: tuple[int, ...]
    nvlinks: tuple[str, ...]


def arrange_gpus(gpus: list[Gpu], ancestors: dict[tuple[int, int], int]) -> Topology:
    """The matrix of GPUs, named as `nvidia-smi topo -m` names links.

    Args:
        gpus: What NVML says of each.
        ancestors: NVML's level of the nearest common PCIe ancestor of each pair (lower index first).
    """
    units = tuple(Unit(f"GPU {gpu.index}", f"{gpu.name}, {gpu.bus}", gpu.cpus, gpu.numa) for gpu in gpus)
    links = tuple(tuple(_link(a, b, ancestors) for b in gpus) for a in gpus)
    return Topology("gpu", units, links)


def gpu_topology(system: Path = SYSTEM) -> Topology | None:
    """The GPUs that this process may use, or None where there is no driver or no GPU."""
    import dataclasses

    read = read_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))
    if read is None:
        return None
    nodes, distances = read_distances(system)
    return dataclasses.replace(arrange_gpus(*read), numa=nodes, distances=distances)


def read_gpus(visible: str | None = None) -> tuple[list[Gpu], dict[tuple[int, int], int]] | None:
    """Ask NVML about GPUs and pairs of them; None where there is no driver or no GPU.

    Args:
        visible: CUDA_VISIBLE_DEVICES, if it is set: indices in PCI order, or UUIDs.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = {i: pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())}
        uuids = {i: _text(pynvml.nvmlDeviceGetUUID(handle)) for i, handle in handles.items()}
        chosen = seen(uuids, visible)
        gpus = [_gpu(pynvml, index, handles[index]) for index in chosen]
        ancestors = {
            (i, j): int(pynvml.nvmlDeviceGetTopologyCommonAncestor(handles[i], handles[j]))
            for i in chosen
            for j in chosen
            if i < j
        }
    except pynvml.NVMLError:
        return None
    return (gpus, ancestors) if gpus else None


def seen(uuids: dict[int, str], visible: str | None) -> list[int]:
    """Indices of the GPUs that CUDA_VISIBLE_DEVICES names, up to its first invalid name, as CUDA does."""
    if visible is None:
        return list(uuids)
    chosen: list[int] = []
    for name in (part.strip() for part in visible.split(",")):
        found = [i for i, uuid in uuids.items() if name == str(i) or (name and uuid.startswith(name))]
        if len(found) != 1:
            break
        chosen += found
    return sorted(set(chosen))


def _link(one: Gpu, other: Gpu, ancestors: dict[tuple[int, int], int]) -> str:
    if one.index == other.index:
        return SELF
    direct = Counter(one.nvlinks)[other.bus]
    switched = min(Counter(one.nvlinks)[SWITCH], Counter(other.nvlinks)[SWITCH])
    if direct or switched:
        return f"NV{direct or switched}"
    level = ancestors[min(one.index, other.index), max(one.index, other.index)]
    return ANCESTORS.get(level, "SYS")


def _gpu(pynvml: Any, index: int, handle: Any) -> Gpu:
    bus = _text(pynvml.nvmlDeviceGetPciInfo(handle).busId).upper()
    return Gpu(
        index=index,
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        bus=bus,
        cpus=_affinity(pynvml, "nvmlDeviceGetCpuAffinity", handle),
        numa=_affinity(pynvml, "nvmlDeviceGetMemoryAffinity", handle, 0) or _kernel_node(bus),
        nvlinks=_nvlinks(pynvml, handle),
    )


def _affinity(pynvml: Any, function: str, handle: Any, *more: int) -> tuple[int, ...]:
    """Numbers of the bits that are set in NVML's words; empty where it does not know."""
    try:
        words = getattr(pynvml, function)(handle, 64, *more)
    except (pynvml.NVMLError, AttributeError):
        return ()
    return set_bits([int(word) for word in words])


def set_bits(words: list[int], width: int = 64) -> tuple[int, ...]:
    """Numbers of the bits that are set, counted from the first word's lowest."""
    return tuple(
        position * width + bit
        for position, word in enumerate(words)
        for bit in range(width)
        if word >> bit & 1
    )


def _kernel_node(bus: str) -> tuple[int, ...]:
    """The NUMA node that the kernel gives to a PCI device ("00000000:07:00.0" is its "0000:07:00.0")."""
    domain, _, rest = bus.lower().partition(":")
    try:
        node = int(Path(f"/sys/bus/pci/devices/{domain[-4:]}:{rest}/numa_node").read_text())
    except (OSError, ValueError):
        return ()
    return (node,) if node >= 0 else ()


def _nvlinks(pynvml: Any, handle: Any) -> tuple[str, ...]:
    found = []
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        try:
            if pynvml.nvmlDeviceGetNvLinkState(handle, link) != pynvml.NVML_FEATURE_ENABLED:
                continue
            remote = _text(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId).upper()
        except pynvml.NVMLError:
            continue  # this card has fewer links, or none
        found.append(SWITCH if _is_switch(pynvml, handle, link) else remote)
    return tuple(found)


def _is_switch(pynvml: Any, handle: Any, link: int) -> bool:
    try:
        kind = pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link)
    except (pynvml.NVMLError, AttributeError):
        return False
    return bool(kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH)


def _text(raw: bytes | str) -> str:
    return raw.decode() if isinstance(raw, bytes) else raw
