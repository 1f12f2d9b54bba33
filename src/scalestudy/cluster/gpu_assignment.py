"""The GPUs that a launcher has assigned to the processes of a node, and the device they compute on."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from scalestudy.hardware.devices import read_gpus
from scalestudy.hardware.no_gpus import driver_is_dead, why_unseen
from scalestudy.util.errors import RunError, UserError

if TYPE_CHECKING:
    from scalestudy.hardware.devices import Gpu
    from scalestudy.hardware.no_gpus import Reason

ASSIGNED = "SCALESTUDY_GPUS"
"""UUIDs of a run's GPUs on this node, or their number. Launchers set the variable; workers check it."""


def assignment(uuids: Sequence[str]) -> dict[str, str]:
    """Return the variable that assigns these GPUs to the processes of a run; none without GPUs."""
    return {ASSIGNED: ",".join(uuids)} if uuids else {}


def assigned_gpus(variables: Mapping[str, str]) -> int | tuple[str, ...]:
    """Return the UUIDs of the assigned GPUs, or their number; 0 if none are assigned.

    Raises:
        UserError: If the variable holds anything else.
    """
    value = variables.get(ASSIGNED, "").strip()
    if value.isascii() and value.isdigit():
        return int(value)
    names = tuple(name.strip() for name in value.split(",")) if value else ()
    if not all(name.startswith(("GPU-", "MIG-")) for name in names):
        raise UserError(
            f"UUIDs of GPUs in {ASSIGNED}, or their number", repr(value), "Do not set it by hand."
        )
    return names or 0


def device_of(
    asked: Literal["auto", "cpu", "gpu"], assigned: int | tuple[str, ...], seen: "Sequence[Gpu]"
) -> Literal["cpu", "gpu"]:
    """Return the device of a process: GPUs if they are requested, assigned or visible, else CPUs.

    GPUs are also returned if the machine has some but the driver does not answer, so that `refuse_missing`
    reports why.

    Args:
        asked: `launch.device` of its point.
        assigned: See `assigned_gpus`.
        seen: GPUs that the process may use, from NVML.
    """
    if asked == "cpu":
        return "cpu"
    return "gpu" if asked == "gpu" or assigned or seen or driver_is_dead() else "cpu"


def refuse_missing(
    assigned: int | tuple[str, ...], seen: "Sequence[Gpu]", why: Callable[[], "Reason"] = why_unseen
) -> None:
    """Refuse to compute on GPUs if none is visible, or if one assigned by UUID is missing.

    Args:
        assigned: See `assigned_gpus`.
        seen: GPUs that this process may use, from NVML.
        why: Returns why no GPU is visible.

    Raises:
        RunError: If GPUs are missing; the message names them, or the likely reason.
    """
    names = () if isinstance(assigned, int) else assigned
    every = read_gpus()
    there = {gpu.uuid for gpu in every} | {part.uuid for gpu in every for part in gpu.instances or ()}
    if lost := sorted(set(names) - there):
        raise RunError(
            f"the GPUs that this run has reserved: {', '.join(names)}",
            f"no {', '.join(lost)}",
            "See `nvidia-smi -L` and the kernel's log. A lost GPU needs a reset.",
        )
    if not seen:
        reason = why()
        asked = ", ".join(names) or (f"{assigned} GPUs" if assigned else "GPUs")
        raise RunError(f"{asked} to compute on", f"none: {reason.words}", reason.action)
