"""An engine set up on what its process was given: a run on GPUs never falls back to CPUs."""

from collections.abc import Sequence

from scalestudy.engines.base import Engine
from scalestudy.study.point import Point
from scalestudy.util.errors import RunError


def set_up(engine: Engine, point: Point, *, threads: int, device: str, gpus: Sequence[str]) -> None:
    """Set an engine up, and refuse it if it lists other GPUs than it was given; before anything computes.

    CUDA shows a process the GPUs that CUDA_VISIBLE_DEVICES names by UUID and no others: as many are these.

    Args:
        engine: What computes.
        point: What is run.
        threads: Cores granted to this process.
        device: "cpu" or "gpu".
        gpus: Names of the GPUs that this process was given.

    Raises:
        RunError: With the likely reason.
    """
    engine.set_up(point, threads=threads, device=device)
    if device != "gpu":
        return
    found = engine.devices(device)
    if len(found) == len(gpus):
        return
    if len(found) > len(gpus):
        why, action = "more than it was shown", "Let no file of the task set CUDA_VISIBLE_DEVICES."
    elif len(gpus) > 1 and any(name.startswith("MIG-") for name in gpus):
        why = "CUDA shows a process one MIG instance and nothing beside it"
        action = "Take a strategy of a process each (horovod, multiworker), or GPUs that are not divided."
    else:
        why, action = engine.why_missing()
    listed = ", ".join(found) or "none"
    raise RunError(
        f"the engine to list {len(gpus)} GPU{'s' * (len(gpus) != 1)}: {', '.join(gpus)}",
        f"{listed}: {why}",
        action,
    )
