"""The environment of a worker process of a run or a check, set before the framework is imported."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from scalestudy.hardware import installed
from scalestudy.hardware.cores import deal_cores
from scalestudy.hardware.devices import ORDER, dealt, read_gpus, showing
from scalestudy.hardware.no_gpus import driver_is_dead, why_unseen
from scalestudy.plugins.engines import EngineTraits
from scalestudy.plugins.traits import Rendezvous
from scalestudy.util.errors import RunError, UserError

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement
    from scalestudy.hardware.devices import Gpu
    from scalestudy.hardware.no_gpus import Reason

ASSIGNED = "SCALESTUDY_GPUS"
"""UUIDs of a run's GPUs on this node, or their number. Launchers set the variable; workers check it."""


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
        changed = {**variables, **self.values}
        for name in self.unset:
            changed.pop(name, None)
        return changed


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

    LD_LIBRARY_PATH (see `library_path`) is read when a process starts. In a running process, a change
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
    wanted: dict[str, str | None] = {}
    if gpus is None:
        wanted |= ORDER
    else:
        wanted |= showing(gpus)
    wanted |= engine.environment(
        variables,
        gpus=gpus is None or bool(gpus),
        rendezvous=rendezvous,
        process=placement,
        quiet=quiet,
    )
    path = installed.library_path(variables)
    if path.dropped:
        wanted[installed.LIBRARY_PATH] = path.value or None
    values, unset = {}, []
    for name, value in wanted.items():
        if value is not None:
            values[name] = value
        elif name in variables:
            unset.append(name)
    return Changes(values, unset)


def own_gpus(
    variables: Mapping[str, str],
    gpus: "Sequence[Gpu]",
    *,
    local_rank: int,
    devices: int = 1,
) -> list[str]:
    """Return the names of one process's GPUs: its own one, or the first GPUs if it computes on several.

    Args:
        variables: Variables as set by the launcher.
        gpus: GPUs that a process with these variables may use, from NVML.
        local_rank: Index among the processes of this node that see the same GPUs: `Placement.gpu_place`.
        devices: Number of GPUs that the process computes on.
    """
    first = local_rank
    # A process with several workers is the only one of its run on the node.
    if devices > 1:
        first = 0
    return dealt(variables, gpus, range(first, first + devices))


def own_cores(
    granted: Sequence[int],
    need: int,
    placement: "Placement",
    near: Sequence[Sequence[int]] = (),
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
    if not near:
        first = placement.local_rank * need
        return sorted(granted)[first : first + need]
    devices = len(near) // placement.local_size
    first = placement.local_rank * devices
    # All processes deal the cores of all GPUs alike, and each takes those of its own.
    dealt = deal_cores(granted, near, need // devices)
    own: list[int] = []
    for share in dealt[first : first + devices]:
        own += share
    return sorted(own)


def keeps_own_log(placement: "Placement", variables: Mapping[str, str]) -> bool:
    """Whether this process must redirect its output to the log of its rank.

    The local launcher redirects it already. At a terminal (alone, or under torchrun) it stays there. All
    other launchers mix the output of their processes.
    """
    if "SCALESTUDY_LAUNCHER" in variables or placement.source == "torchrun":
        return False
    return placement.source != "alone" or "SLURM_JOB_ID" in variables


def assignment(uuids: Sequence[str]) -> dict[str, str]:
    """Return the variable that assigns these GPUs to the processes of a run; none without GPUs."""
    if not uuids:
        return {}
    return {ASSIGNED: ",".join(uuids)}


def assigned_gpus(variables: Mapping[str, str]) -> int | tuple[str, ...]:
    """Return the UUIDs of the assigned GPUs, or their number; 0 if none are assigned.

    Raises:
        UserError: If the variable holds anything else.
    """
    value = variables.get(ASSIGNED, "").strip()
    if value.isascii() and value.isdigit():
        return int(value)
    names: tuple[str, ...] = ()
    if value:
        names = tuple(name.strip() for name in value.split(","))
    if not all(name.startswith(("GPU-", "MIG-")) for name in names):
        raise UserError(
            f"UUIDs of GPUs in {ASSIGNED}, or their number",
            repr(value),
            "Do not set it by hand.",
        )
    return names or 0


def device_of(
    asked: Literal["auto", "cpu", "gpu"],
    assigned: int | tuple[str, ...],
    seen: "Sequence[Gpu]",
) -> Literal["cpu", "gpu"]:
    """Return the device of a process: GPUs if they are requested, assigned or visible, else CPUs.

    GPUs are also returned if the machine has some but the driver does not answer, so that `refuse_missing`
    reports why.

    Args:
        asked: `launch.device` of its point.
        assigned: See `assigned_gpus`.
        seen: GPUs that the process may use, from NVML.
    """
    if asked != "auto":
        return asked
    # A launcher that assigned GPUs expects them to be used: that none is seen is an error, not a choice.
    if assigned or seen or driver_is_dead():
        return "gpu"
    return "cpu"


def refuse_missing(
    assigned: int | tuple[str, ...],
    seen: "Sequence[Gpu]",
    why: Callable[[], "Reason"] = why_unseen,
) -> None:
    """Refuse to compute on GPUs if none is visible, or if one assigned by UUID is missing.

    Args:
        assigned: See `assigned_gpus`.
        seen: GPUs that this process may use, from NVML.
        why: Returns why no GPU is visible.

    Raises:
        RunError: If GPUs are missing; the message names them, or the likely reason.
    """
    if isinstance(assigned, int):
        asked = "GPUs"
        if assigned:
            asked = f"{assigned} GPUs"
    else:
        asked = ", ".join(assigned)
        # Never replaced by another GPU, which another run may have reserved.
        lost = sorted(set(assigned) - _uuids_here())
        if lost:
            raise RunError(
                f"the GPUs that this run has reserved: {asked}",
                f"no {', '.join(lost)}",
                "See `nvidia-smi -L` and the kernel's log. A lost GPU needs a reset.",
            )
    if not seen:
        reason = why()
        raise RunError(f"{asked} to compute on", f"none: {reason.words}", reason.action)


def _uuids_here() -> set[str]:
    """Return the UUIDs of all GPUs that can be opened, and of their MIG instances."""
    uuids = set()
    for gpu in read_gpus():
        uuids.add(gpu.uuid)
        for part in gpu.instances or ():
            uuids.add(part.uuid)
    return uuids
