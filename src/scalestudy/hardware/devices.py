"""The GPUs of this machine, known by UUID: all of them, those that this process may use, and their shares.

CUDA_VISIBLE_DEVICES is read as CUDA reads it:
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables and, for MIG,
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/#cuda-visible-devices
"""

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scalestudy.hardware.nvml import Handle, Library, ask, library, text

VISIBLE = "CUDA_VISIBLE_DEVICES"
NO_DEVICE = "-1"
"""A name that CUDA finds no device by."""
ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""By which CUDA's numbers are NVML's; its own order is from the fastest GPU to the slowest."""


@dataclass(frozen=True)
class Gpu:
    """What NVML says of one GPU, or of one MIG instance of it.

    Attributes:
        index: Its place in the order of PCI addresses among those that this process may open, as CUDA
            counts; that of a MIG instance is its GPU's.
        uuid: "GPU-…", or "MIG-…"; "" where NVML does not say.
        name: Product.
        bus: PCI address, "00000000:07:00.0".
        memory: Bytes; None where NVML does not say.
        capability: CUDA's compute capability, (9, 0); None where NVML does not say.
        cpus: Logical CPUs near it.
        numa: NUMA nodes near it.
        instances: What it is divided into, where MIG is on; None for a GPU that is used as a whole.
    """

    index: int
    uuid: str
    name: str
    bus: str
    memory: int | None = None
    capability: tuple[int, int] | None = None
    cpus: tuple[int, ...] = ()
    numa: tuple[int, ...] = ()
    instances: "tuple[Gpu, ...] | None" = None


@functools.cache
def gpus() -> int:
    """GPUs that this process may use, by NVML and CUDA_VISIBLE_DEVICES; 0 without a driver."""
    return len(visible_gpus(os.environ))


def gpus_of_node() -> int:
    """GPUs of this machine, whatever its variables hide; of divided ones the parts. 0 without a driver."""
    return sum(1 if gpu.instances is None else len(gpu.instances) for gpu in read_gpus())


def lowest_capability() -> tuple[int, int] | None:
    """The lowest compute capability among these; None where NVML says none."""
    return min((gpu.capability for gpu in visible_gpus(os.environ) if gpu.capability), default=None)


def visible_gpus(environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that a process with these variables may use, in the order in which CUDA counts them there.

    A GPU that is divided stands for its first MIG instance, the only one that CUDA shows.
    """
    return resolved(*_named(environment))


def lendable_gpus(environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs of which a process of one device may be given any.

    As `visible_gpus`, but a GPU that is divided stands for all of its MIG instances, unless one is named.
    """
    names, every = _named(environment)
    lendable: dict[str, Gpu] = {}
    for name, gpu in zip(names, resolved(names, every), strict=False):
        whole = next((other for other in every if gpu in (other.instances or ())), None)
        parts = (gpu,) if whole is None or name.startswith("MIG-") else whole.instances or ()
        lendable |= {part.uuid or name: part for part in parts}
    return list(lendable.values())


def _named(environment: Mapping[str, str]) -> tuple[list[str], list[Gpu]]:
    """Names of the GPUs that these variables show, and all GPUs that there are."""
    every = read_gpus()
    names = named(environment)
    if names is None:
        names = [str(gpu.index) for gpu in every if gpu.instances != ()]
    return names, every


def visible_uuids(environment: Mapping[str, str]) -> list[str]:
    """UUIDs of these, where NVML says them."""
    return [gpu.uuid for gpu in visible_gpus(environment) if gpu.uuid]


def read_gpus() -> list[Gpu]:
    """All GPUs that this process may open, whatever its variables say; none without a driver."""
    nvml = library()
    return [] if nvml is None else [gpu for gpu, _ in opened(nvml)]


def opened(nvml: Library) -> list[tuple[Gpu, Handle]]:
    """All GPUs that can be opened, with NVML's handles of them. One that cannot does not lose the others."""
    gpus: list[tuple[Gpu, Handle]] = []
    index = 0
    for number in range(int(ask(nvml, "nvmlDeviceGetCount", otherwise=0))):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            uuid = _uuid(nvml, handle)
        except nvml.NVMLError as error:
            # CUDA does not count what a cgroup keeps from this process; a lost device keeps its number.
            index += error.value != nvml.NVML_ERROR_NO_PERMISSION
            continue
        gpus.append((_gpu(nvml, handle, index, uuid), handle))
        index += 1
    return gpus


def _uuid(nvml: Library, handle: Handle) -> str:
    """Its UUID, or "" where this device has none.

    Raises:
        NVMLError: If the device itself cannot be asked.
    """
    try:
        return text(nvml.nvmlDeviceGetUUID(handle))
    except nvml.NVMLError as error:
        if error.value in (nvml.NVML_ERROR_NO_PERMISSION, nvml.NVML_ERROR_GPU_IS_LOST):
            raise
        return ""


def _gpu(nvml: Library, handle: Handle, index: int, uuid: str) -> Gpu:
    pci = ask(nvml, "nvmlDeviceGetPciInfo", handle)
    capability = ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    whole = Gpu(
        index=index, uuid=uuid, name=text(ask(nvml, "nvmlDeviceGetName", handle, otherwise="GPU")),
        bus="" if pci is None else text(pci.busId).upper(), memory=_memory(nvml, handle),
        capability=None if capability is None else (int(capability[0]), int(capability[1])),
        cpus=set_bits(ask(nvml, "nvmlDeviceGetCpuAffinity", handle, 64, otherwise=())),
        numa=set_bits(ask(nvml, "nvmlDeviceGetMemoryAffinity", handle, 64, 0, otherwise=())),
    )  # fmt: skip
    mode = ask(nvml, "nvmlDeviceGetMigMode", handle, otherwise=(0, 0))
    if mode[0] != getattr(nvml, "NVML_DEVICE_MIG_ENABLE", 1):
        return whole
    return replace(whole, instances=tuple(_instances(nvml, handle, whole)))


def _instances(nvml: Library, handle: Handle, whole: Gpu) -> list[Gpu]:
    instances = []
    for number in range(int(ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle, otherwise=0))):
        part = ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        uuid = None if part is None else ask(nvml, "nvmlDeviceGetUUID", part)
        if uuid is None:
            continue  # places for instances may be empty
        name = text(ask(nvml, "nvmlDeviceGetName", part, otherwise=whole.name))
        instances.append(replace(whole, uuid=text(uuid), name=name, memory=_memory(nvml, part)))
    return instances


def _memory(nvml: Library, handle: Handle) -> int | None:
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    return None if memory is None else int(memory.total)


def set_bits(words: Any, width: int = 64) -> tuple[int, ...]:
    """Numbers of the bits that are set, counted from the first word's lowest: how NVML gives sets of CPUs."""
    return tuple(
        position * width + bit
        for position, word in enumerate(words)
        for bit in range(width)
        if int(word) >> bit & 1
    )


def named(environment: Mapping[str, str]) -> list[str] | None:
    """The names in the variable, as they stand there; None where it is not set: then CUDA shows all."""
    value = environment.get(VISIBLE)
    return None if value is None else [name.strip() for name in value.split(",")]


def resolved(names: Sequence[str], gpus: Sequence[Gpu]) -> list[Gpu]:
    """The GPUs that CUDA would show for these names: those before the first that names none, or one again.

    Names are places in the order of PCI addresses, UUIDs, or beginnings of UUIDs that only one GPU has.
    """
    shown: list[Gpu] = []
    for name in names:
        gpu = _find(name, gpus)
        if gpu is None or gpu in shown:
            break
        shown.append(gpu)
    return shown


def _find(name: str, gpus: Sequence[Gpu]) -> Gpu | None:
    if name.startswith("MIG-"):
        instances = [part for gpu in gpus for part in gpu.instances or ()]
        exact = [part for part in instances if part.uuid == name]
        return _only(exact or [part for part in instances if part.uuid.startswith(name)])
    if name.startswith("GPU-"):
        gpu = _only([gpu for gpu in gpus if gpu.uuid.startswith(name)])
    else:
        gpu = _only([gpu for gpu in gpus if name == str(gpu.index)])
    if gpu is None or gpu.instances is None:
        return gpu
    return next(iter(gpu.instances), None)  # CUDA shows the first one of a GPU that is divided


def _only(gpus: Sequence[Gpu]) -> Gpu | None:
    return gpus[0] if len(gpus) == 1 else None


def dealt(environment: Mapping[str, str], gpus: Sequence[Gpu], places: Sequence[int]) -> list[str]:
    """Names of the GPUs at these places among those that the environment shows: one process's share.

    Named by UUID where NVML knows them, else as the environment names them, else by number. Where the
    environment names one GPU and one is wanted, the launcher has already chosen. A place beyond the last gets
    a name that CUDA finds no device by, rather than another process's GPU. `gpus` are what the environment
    resolves to, if NVML could be asked.
    """
    given = named(environment) if environment.get(VISIBLE) else None
    names = [gpu.uuid for gpu in gpus]
    if not names or not all(names):
        if given is None:
            return [str(place) for place in places]
        names = given
    if given is not None and len(given) == len(places) == 1:
        places = [0]
    return [names[place] if place < len(names) else NO_DEVICE for place in places]


def showing(names: Sequence[str]) -> dict[str, str]:
    """The variables of a process that sees these GPUs and no others; none of them on CPUs."""
    if not names:
        return {VISIBLE: NO_DEVICE}
    return {VISIBLE: ",".join(names), **ORDER}
