"""The environment of a worker process, made before its framework is imported: for runs and checks alike."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scalestudy.hardware import shadowing
from scalestudy.hardware.cores import shares
from scalestudy.hardware.devices import ORDER, dealt, showing
from scalestudy.study.engines import EngineTraits
from scalestudy.study.strategies import Rendezvous

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement
    from scalestudy.hardware.devices import Gpu

DROPPED = "SCALESTUDY_LIBRARY_FOLDERS_DROPPED"
"""Variable that tells a process, and its record, what was dropped from LD_LIBRARY_PATH for it."""


class Changes(NamedTuple):
    """What a process's variables need.

    Attributes:
        values: Variables to set.
        unset: Names of those to unset; each is set now.
    """

    values: dict[str, str]
    unset: list[str]

    def applied(self, variables: Mapping[str, str]) -> dict[str, str]:
        """All variables of the process, from those of its parent."""
        kept = {name: value for name, value in variables.items() if name not in self.unset}
        return kept | self.values


def process_environment(
    variables: Mapping[str, str], engine: EngineTraits, *, gpus: Sequence[str] | None,
    rendezvous: Rendezvous | None = None, placement: "Placement | None" = None, quiet: bool = False,
) -> Changes:  # fmt: skip
    """What changes in the variables of a process before it imports its framework.

    LD_LIBRARY_PATH (see `library_changes`) is read when a process starts: in a process that runs, it changes
    what its children load.

    Args:
        variables: As they are.
        engine: Whose framework it is.
        gpus: Names of the GPUs that it computes on (see `own_gpus`); none of them on CPUs. None leaves it
            all that it sees.
        rendezvous: How its strategy's processes find each other.
        placement: This process among those; needed where there are several.
        quiet: Whether its last line of output is an answer, so that the framework says errors only.

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
    """What NCCL (2.30 and later) needs where one of these GPUs is a MIG instance.

    Two instances of one GPU it takes for a mistake of the launcher's.
    """
    several = any(name.startswith("MIG-") for name in gpus)
    return {"NCCL_MULTI_RANK_GPU_ENABLE": "1"} if several else {}


def library_changes(variables: Mapping[str, str]) -> Changes:
    """What changes so that a process loads the packages' CUDA, and no module's; nothing if it does so."""
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
    """Names of the GPUs of one process: the first ones for a process that computes on several, else its own.

    Args:
        variables: As its launcher left them.
        gpus: What NVML says that a process with these variables may use.
        local_rank: Its index among the processes of this node that see the same GPUs: `Placement.gpu_place`.
        devices: GPUs that it computes on.
    """
    first = 0 if devices > 1 else local_rank
    return dealt(variables, gpus, range(first, first + devices))


def own_cores(
    granted: Sequence[int], need: int, placement: "Placement", near: Sequence[Sequence[int]] = ()
) -> list[int] | None:
    """The cores that this process pins itself to, or None to stay on all that are granted.

    A launcher may grant all processes of a node the same cores, or more than a worker is to have; a
    comparison of worker counts needs each worker on as many cores, and on its own.

    Args:
        granted: Cores that this process may run on, in the order in which they are dealt out.
        need: Cores that its workers are to have.
        placement: This process among the others.
        near: For each GPU of this node's processes, as many for each, the cores near it; none on CPUs.

    Returns:
        The share of the local rank, if there are more than needed and enough for all local ranks.
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
    """Whether this process sends its output to the log of its rank itself.

    Our local launcher has done it already; at a terminal (alone, or under torchrun) output stays there.
    All other launchers mix the output of their processes.
    """
    if "SCALESTUDY_LAUNCHER" in variables or placement.source == "torchrun":
        return False
    return placement.source != "alone" or "SLURM_JOB_ID" in variables
