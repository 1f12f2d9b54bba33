"""The environment of a worker process of a run or a check, set before the framework is imported."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scalestudy.hardware import shadowing
from scalestudy.hardware.cores import shares
from scalestudy.hardware.devices import ORDER, dealt, showing
from scalestudy.plugins.engines import EngineTraits
from scalestudy.plugins.strategies import Rendezvous

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement
    from scalestudy.hardware.devices import Gpu

DROPPED = "SCALESTUDY_LIBRARY_FOLDERS_DROPPED"
"""Variable with the folders that were dropped from a process's LD_LIBRARY_PATH, also for its record."""


class Changes(NamedTuple):
    """Changes to the variables of a process.

    Attributes:
        values: Variables to set.
        unset: Names of variables to unset, all of which are set now.
    """

    values: dict[str, str]
    unset: list[str]

    def applied(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return all variables of the process, from those of its parent."""
        kept = {name: value for name, value in variables.items() if name not in self.unset}
        return kept | self.values


def process_environment(
    variables: Mapping[str, str],
    engine: EngineTraits,
    *,
    gpus: Sequence[str] | None,
    rendezvous: Rendezvous | None = None,
    placement: "Placement | None" = None,
    quiet: bool = False,
) -> Changes:
    """Return the changes to the variables of a process that are needed before it imports its framework.

    LD_LIBRARY_PATH (see `library_changes`) is read when a process starts. In a running process, a change
    affects only what its children load.

    Args:
        variables: Current variables.
        engine: Engine of the framework.
        gpus: Names of the GPUs to compute on (see `own_gpus`); empty on CPUs. None leaves all visible GPUs.
        rendezvous: How the processes of the strategy find each other.
        placement: Placement of this process; required if there are several.
        quiet: Whether the process prints an answer on its last line, so that the framework logs only errors.

    Raises:
        UserError: If the placement lacks what the rendezvous needs.
    """
    wanted = engine.environment(
        variables, gpus=gpus is None or bool(gpus), rendezvous=rendezvous, process=placement, quiet=quiet
    )
    values = (ORDER if gpus is None else showing(gpus)) | for_instances(gpus or ())
    values = values | {name: value for name, value in wanted.items() if value is not None}
    libraries = library_changes(variables)
    unwanted = [name for name, value in wanted.items() if value is None]
    unset = [name for name in (*unwanted, *libraries.unset) if name in variables]
    return Changes(values | libraries.values, unset)


def for_instances(gpus: Sequence[str]) -> dict[str, str]:
    """Return variables that NCCL (2.30 and later) needs if one of these GPUs is a MIG instance.

    By default, NCCL rejects two instances of one GPU as a mistake of the launcher.
    """
    several = any(name.startswith("MIG-") for name in gpus)
    return {"NCCL_MULTI_RANK_GPU_ENABLE": "1"} if several else {}


def library_changes(variables: Mapping[str, str]) -> Changes:
    """Return changes that make a process load CUDA from the packages, not from a module; none if it does."""
    path = shadowing.library_path(variables)
    if not path.dropped:
        return Changes({}, [])
    dropped = {DROPPED: os.pathsep.join(path.dropped)}
    if path.value:
        return Changes({shadowing.VARIABLE: path.value, **dropped}, [])
    return Changes(dropped, [shadowing.VARIABLE])


def own_gpus(
    variables: Mapping[str, str], gpus: "Sequence[Gpu]", *, local_rank: int, devices: int = 1
) -> list[str]:
    """Return the names of one process's GPUs: its own one, or the first GPUs if it computes on several.

    Args:
        variables: Variables as set by the launcher.
        gpus: GPUs that a process with these variables may use, from NVML.
        local_rank: Index among the processes of this node that see the same GPUs: `Placement.gpu_place`.
        devices: Number of GPUs that the process computes on.
    """
    first = 0 if devices > 1 else local_rank
    return dealt(variables, gpus, range(first, first + devices))


def own_cores(
    granted: Sequence[int], need: int, placement: "Placement", near: Sequence[Sequence[int]] = ()
) -> list[int] | None:
    """Return the cores that this process pins itself to, or None to keep all granted cores.

    A launcher may grant all processes of a node the same cores, or too many. To compare numbers of workers,
    each worker needs the same number of cores, and none of another worker's.

    Args:
        granted: Cores that this process may run on, in the order of assignment.
        need: Cores for the workers of this process.
        placement: Placement of this process.
        near: For each GPU of this node's processes, the cores near it; empty on CPUs. Each process has
            equally many GPUs.

    Returns:
        The share of the local rank if more cores than needed are granted, and enough for all local ranks.
    """
    if len(granted) <= need or len(granted) < need * placement.local_size:
        return None
    if near:
        devices = len(near) // placement.local_size
        first = placement.local_rank * devices
        parts = shares(granted, near, need // devices)[first : first + devices]
        return sorted(core for share in parts for core in share)
    first = placement.local_rank * need
    return sorted(granted)[first : first + need]


def keeps_own_log(placement: "Placement", variables: Mapping[str, str]) -> bool:
    """Whether this process must redirect its output to the log of its rank.

    The local launcher redirects it already. At a terminal (alone, or under torchrun) it stays there. All
    other launchers mix the output of their processes.
    """
    if "SCALESTUDY_LAUNCHER" in variables or placement.source == "torchrun":
        return False
    return placement.source != "alone" or "SLURM_JOB_ID" in variables
