"""CUDA_VISIBLE_DEVICES: read as CUDA reads it, and dealt out among the processes of a node. Pure.

Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables and, for MIG,
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/#cuda-visible-devices
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalestudy.hardware.devices import Gpu

VARIABLE = "CUDA_VISIBLE_DEVICES"
NO_DEVICE = "-1"
"""A name that CUDA finds no device by."""
ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""By which CUDA's numbers are NVML's; its own order is from the fastest GPU to the slowest."""


def named(environment: Mapping[str, str]) -> list[str] | None:
    """The names in the variable, as they stand there; None where it is not set: then CUDA shows all."""
    value = environment.get(VARIABLE)
    return None if value is None else [name.strip() for name in value.split(",")]


def resolved(names: Sequence[str], gpus: "Sequence[Gpu]") -> "list[Gpu]":
    """The GPUs that CUDA would show for these names: those before the first that names none, or one again.

    Args:
        names: Places in the order of PCI addresses, UUIDs, or beginnings of UUIDs that only one GPU has.
        gpus: All that there are.
    """
    found: list[Gpu] = []
    for name in names:
        gpu = _find(name, gpus)
        if gpu is None or gpu in found:
            break
        found.append(gpu)
    return found


def _find(name: str, gpus: "Sequence[Gpu]") -> "Gpu | None":
    if name.startswith("MIG-"):
        instances = [each for gpu in gpus for each in gpu.instances or ()]
        exact = [each for each in instances if name in (each.uuid, each.old_name)]
        return _only(exact or [each for each in instances if each.uuid.startswith(name)])
    if name.startswith("GPU-"):
        gpu = _only([gpu for gpu in gpus if gpu.uuid.startswith(name)])
    else:
        gpu = _only([gpu for gpu in gpus if name == str(gpu.index)])
    if gpu is None or gpu.instances is None:
        return gpu
    return next(iter(gpu.instances), None)  # CUDA shows the first one of a GPU that is divided


def _only(found: "Sequence[Gpu]") -> "Gpu | None":
    return found[0] if len(found) == 1 else None


def dealt(environment: Mapping[str, str], gpus: "Sequence[Gpu]", places: Sequence[int]) -> list[str]:
    """Names of the GPUs at these places among those that the environment shows: one process's share.

    Named by UUID where NVML knows them, else as the environment names them, else by number. Where the
    environment names one GPU and one is wanted, the launcher has already chosen. A place beyond the last
    gets a name that CUDA finds no device by, rather than another process's GPU.

    Args:
        environment: The variables as the launcher left them.
        gpus: What they resolve to, if NVML could be asked.
        places: As many as the process computes on, from 0.
    """
    given = named(environment) if environment.get(VARIABLE) else None
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
        return {VARIABLE: NO_DEVICE}
    return {VARIABLE: ",".join(names), **ORDER}
