"""The GPUs of this machine, by UUID: all, those that this process may use, and the share of each process.

CUDA_VISIBLE_DEVICES is interpreted as by CUDA:
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
"""A name that matches no CUDA device."""
ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Makes CUDA number GPUs like NVML; by default, CUDA orders them from the fastest to the slowest."""


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a MIG instance of one, as NVML describes it.

    Attributes:
        index: Index by PCI address among the GPUs that this process may open, as CUDA counts; for a MIG
            instance, that of its GPU.
        uuid: "GPU-…" or "MIG-…"; "" if NVML does not provide it.
        name: Product name.
        memory: Bytes of memory; None if NVML does not provide it.
        capability: CUDA compute capability, such as (9, 0); None if NVML does not provide it.
        cpus: Logical CPUs near it.
        instances: MIG instances, if MIG is on; None for a GPU without MIG.
    """

    index: int
    uuid: str
    name: str
    memory: int | None = None
    capability: tuple[int, int] | None = None
    cpus: tuple[int, ...] = ()
    instances: "tuple[Gpu, ...] | None" = None


@functools.cache
def gpus() -> int:
    """Return how many GPUs this process may use, by NVML and CUDA_VISIBLE_DEVICES; 0 without a driver."""
    usable = visible_gpus(os.environ)
    return len(usable)


def gpus_of_node() -> int:
    """Count this machine's GPUs, or their MIG instances, including hidden ones; 0 without a driver."""
    count = 0
    for gpu in read_gpus():
        if gpu.instances is None:
            count += 1
        else:
            count += len(gpu.instances)
    return count


def lowest_capability() -> tuple[int, int] | None:
    """Return the lowest compute capability among the usable GPUs; None if NVML provides none."""
    usable = visible_gpus(os.environ)
    known = [gpu.capability for gpu in usable if gpu.capability]
    return min(known, default=None)


def visible_gpus(environment: Mapping[str, str]) -> list[Gpu]:
    """Return the GPUs that a process with these variables may use, in the order of CUDA's numbers.

    A GPU with MIG is replaced by its first instance, the only one that CUDA shows.
    """
    every = read_gpus()
    names = visible_names(environment)
    if names is None:
        # With MIG on and no instance, a GPU computes nothing.
        names = [str(gpu.index) for gpu in every if gpu.instances != ()]
    return resolve_gpus(names, every)


def visible_uuids(environment: Mapping[str, str]) -> list[str]:
    """Return the UUIDs of `visible_gpus`, without GPUs whose UUID is unknown."""
    return [gpu.uuid for gpu in visible_gpus(environment) if gpu.uuid]


def read_gpus() -> list[Gpu]:
    """Return all GPUs that this process may open, regardless of its variables; none without a driver."""
    nvml = library()
    if nvml is None:
        return []
    return [gpu for gpu, _ in open_devices(nvml)]


def open_devices(nvml: Library) -> list[tuple[Gpu, Handle]]:
    """Return all GPUs that can be opened, with their NVML handles. GPUs that fail are skipped."""
    gpus: list[tuple[Gpu, Handle]] = []
    # NVML's numbers have gaps where a cgroup hides GPUs; CUDA's have none.
    index = 0
    count = int(ask(nvml, "nvmlDeviceGetCount", otherwise=0))
    for number in range(count):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            uuid = _uuid(nvml, handle)
        except nvml.NVMLError as error:
            # CUDA does not count GPUs that a cgroup hides from this process; a lost GPU keeps its number.
            if error.value != nvml.NVML_ERROR_NO_PERMISSION:
                index += 1
            continue
        gpu = _gpu(nvml, handle, index, uuid)
        gpus.append((gpu, handle))
        index += 1
    return gpus


def _uuid(nvml: Library, handle: Handle) -> str:
    """Return the UUID of a device, or "" if it has none.

    Raises:
        NVMLError: If the device is lost or may not be queried.
    """
    try:
        return text(nvml.nvmlDeviceGetUUID(handle))
    except nvml.NVMLError as error:
        # A hidden or lost GPU must not be taken for one without a UUID.
        if error.value in (nvml.NVML_ERROR_NO_PERMISSION, nvml.NVML_ERROR_GPU_IS_LOST):
            raise
        return ""


def _gpu(
    nvml: Library,
    handle: Handle,
    index: int,
    uuid: str,
) -> Gpu:
    words = ask(nvml, "nvmlDeviceGetCpuAffinity", handle, 64, otherwise=())
    name = ask(nvml, "nvmlDeviceGetName", handle, otherwise="GPU")
    gpu = Gpu(
        index=index,
        uuid=uuid,
        name=text(name),
        memory=_memory(nvml, handle),
        cpus=set_bits(words),
    )
    capability = ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    if capability is not None:
        major, minor = capability
        gpu = replace(gpu, capability=(int(major), int(minor)))
    # The mode now, and the one after the next reset.
    mode, _ = ask(nvml, "nvmlDeviceGetMigMode", handle, otherwise=(0, 0))
    if mode != getattr(nvml, "NVML_DEVICE_MIG_ENABLE", 1):
        return gpu
    return replace(gpu, instances=tuple(_instances(nvml, handle, gpu)))


def _instances(nvml: Library, handle: Handle, whole: Gpu) -> list[Gpu]:
    """Return the MIG instances of a GPU."""
    instances = []
    most = ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle, otherwise=0)
    for number in range(int(most)):
        part = ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        # Slots for instances may be empty.
        if part is None:
            continue
        # CUDA_VISIBLE_DEVICES names a certain instance by its UUID.
        uuid = ask(nvml, "nvmlDeviceGetUUID", part)
        if uuid is None:
            continue
        name = text(ask(nvml, "nvmlDeviceGetName", part, otherwise=whole.name))
        memory = _memory(nvml, part)
        instances.append(
            replace(
                whole,
                uuid=text(uuid),
                name=name,
                memory=memory,
            )
        )
    return instances


def _memory(nvml: Library, handle: Handle) -> int | None:
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    if memory is None:
        return None
    return int(memory.total)


def set_bits(words: Any) -> tuple[int, ...]:
    """Return the indices of the set bits, from the lowest bit of the first word: NVML's form of CPU sets."""
    found = []
    for position, word in enumerate(words):
        first = position * 64
        for bit in range(64):
            is_set = int(word) >> bit & 1
            if is_set:
                found.append(first + bit)
    return tuple(found)


def visible_names(environment: Mapping[str, str]) -> list[str] | None:
    """Return the names in CUDA_VISIBLE_DEVICES; None if it is not set, in which case CUDA shows all GPUs."""
    value = environment.get(VISIBLE)
    if value is None:
        return None
    return [name.strip() for name in value.split(",")]


def resolve_gpus(names: Sequence[str], gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the GPUs that CUDA shows for these names: those before the first unknown or repeated one.

    Names are indices by PCI address, UUIDs, or unique prefixes of UUIDs.
    """
    shown: list[Gpu] = []
    for name in names:
        gpu = _find(name, gpus)
        if gpu is None or gpu in shown:
            break
        shown.append(gpu)
    return shown


def _find(name: str, gpus: Sequence[Gpu]) -> Gpu | None:
    """Return the GPU, or the MIG instance, that CUDA shows for a name."""
    if name.startswith("MIG-"):
        return _find_instance(name, gpus)
    if name.startswith("GPU-"):
        named = [gpu for gpu in gpus if gpu.uuid.startswith(name)]
    else:
        named = [gpu for gpu in gpus if name == str(gpu.index)]
    gpu = _only(named)
    if gpu is None or gpu.instances is None:
        return gpu
    if not gpu.instances:
        return None
    # CUDA shows only the first instance.
    return gpu.instances[0]


def _find_instance(name: str, gpus: Sequence[Gpu]) -> Gpu | None:
    """Return the MIG instance with this UUID, or else the only one whose UUID begins so."""
    beginning = []
    for gpu in gpus:
        for part in gpu.instances or ():
            if part.uuid == name:
                return part
            if part.uuid.startswith(name):
                beginning.append(part)
    return _only(beginning)


def _only(gpus: Sequence[Gpu]) -> Gpu | None:
    if len(gpus) != 1:
        return None
    return gpus[0]


def dealt(
    environment: Mapping[str, str],
    gpus: Sequence[Gpu],
    places: Sequence[int],
) -> list[str]:
    """Return the names of the GPUs at these indices among those that the environment shows.

    The names are UUIDs if NVML provides them, else the names in the environment, else numbers. If the
    environment names one GPU and one is requested, the launcher has already assigned it. An index beyond the
    last yields `NO_DEVICE`, rather than another process's GPU. `gpus` are those that the environment resolves
    to; empty without NVML.
    """
    given = None
    # Set but empty, the variable hides all GPUs and names none.
    if environment.get(VISIBLE):
        given = visible_names(environment)
    names = [gpu.uuid for gpu in gpus]
    all_have_uuids = all(names)
    if not names or not all_have_uuids:
        if given is None:
            return [str(place) for place in places]
        names = given
    if given is not None and len(given) == 1 and len(places) == 1:
        places = [0]
    chosen = []
    for place in places:
        if place < len(names):
            chosen.append(names[place])
        else:
            chosen.append(NO_DEVICE)
    return chosen


def showing(names: Sequence[str]) -> dict[str, str]:
    """Return the variables of a process that sees only these GPUs; without names it sees none."""
    # Said rather than left unset, in which case CUDA shows all GPUs.
    if not names:
        return {VISIBLE: NO_DEVICE}
    return {VISIBLE: ",".join(names), **ORDER}
