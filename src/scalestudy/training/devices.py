"""The devices of a run: an engine set up on what its process was given, and a GPU for each process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.engines.base import Engine, engine_of
from scalestudy.engines.group import Group, Joined, join
from scalestudy.hardware import cores
from scalestudy.measure.clock import PhaseClock
from scalestudy.study.engines import engine_traits
from scalestudy.study.point import Point
from scalestudy.study.run_folder import RunFolder
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.imports import without_unused

UNUSABLE = "invalid usage"
"""What NCCL says in its first sum where two processes have one GPU (ncclInvalidUsage; src/init.cc)."""
LONGEST_UUID = 96
EXPECTED = "a GPU of its own for each process"
ACTION = (
    "The launcher must show every process all GPUs of its node, or each process a different one: look at "
    "--gpu-bind, at gpu_request in the site profile, and at what sets CUDA_VISIBLE_DEVICES. "
    "A node that has lost a GPU looks the same: see `nvidia-smi -L` there."
)


@dataclass(frozen=True)
class OwnPart:
    """What this process has of a run: `device` is "cpu" or "gpu", `engine` the point's own by default."""

    folder: RunFolder
    point: Point
    placement: Placement
    clock: PhaseClock
    device: str
    gpus: Sequence[str] = ()
    engine: Engine | None = None


def joined_workers(part: OwnPart) -> tuple[Engine, Joined]:
    """The engine, set up on this process's cores and GPUs; the workers, joined."""
    point, clock, device = part.point, part.clock, part.device
    with clock.phase("framework"), without_unused(engine_traits(point.engine).unused):
        engine = part.engine or engine_of(point.engine)
        set_up(engine, point, threads=len(cores.granted()), device=device, gpus=part.gpus)
    with clock.phase("join"):
        joined = join(
            point.implementation, part.placement,
            workers=point.workers, device=device, communication=point.launch.communication,
        )  # fmt: skip
    return engine, joined


def set_up(engine: Engine, point: Point, *, threads: int, device: str, gpus: Sequence[str]) -> None:
    """Set an engine up, and refuse it if it lists other GPUs than it was given; before anything computes.

    CUDA shows a process the GPUs that CUDA_VISIBLE_DEVICES names by UUID and no others: as many are these.

    Raises:
        RunError: With the likely reason.
    """
    engine.set_up(point, threads=threads, device=device)
    if device != "gpu":
        return
    listed = engine.devices(device)
    if len(listed) == len(gpus):
        return
    if len(listed) > len(gpus):
        why, action = "more GPUs than it was shown", "Do not set CUDA_VISIBLE_DEVICES in the task file."
    elif len(gpus) > 1 and any(name.startswith("MIG-") for name in gpus):
        why = "CUDA shows a process one MIG instance and nothing beside it"
        action = "Use a strategy with one process per worker (horovod, multiworker), or undivided GPUs."
    else:
        why, action = engine.why_missing()
    raise RunError(
        f"the engine to list {len(gpus)} GPU{'s' * (len(gpus) != 1)}: {', '.join(gpus)}",
        f"{', '.join(listed) or 'none'}: {why}",
        action,
    )


def refuse_shared_gpus(
    group: Group, uuids: Sequence[str], recorded: Callable[[], Mapping[int, Sequence[str]]] = dict
) -> None:
    """Refuse processes that compute on one GPU; each of them sees nothing wrong by itself.

    Slurm deals one GPU to several tasks under `--gpu-bind=single:2` or `map_gpu:0`, wrappers by mistake.
    Where processes tell each other by NCCL (multiworker), it refuses first ("Duplicate GPU detected"): then
    the ranks' records name them (`recorded`, UUIDs by rank), or NCCL's words stand alone.

    Raises:
        UserError: On every rank, if two have one in common.
    """
    if group.size == 1:
        return
    try:
        (names,) = group.gather([np.array([next(iter(uuids), "").encode()], f"S{LONGEST_UUID}")])
    except Exception as error:  # each framework has its own
        _refuse_alike({rank: next(iter(names), "") for rank, names in recorded().items()})
        if UNUSABLE not in str(error):
            raise
        words = next(line for line in str(error).splitlines() if UNUSABLE in line)
        raise UserError(EXPECTED, f"NCCL's refusal, as of two on one: {words.strip()}", ACTION) from error
    _refuse_alike({rank: name.decode() for rank, name in enumerate(names.tolist())})


def _refuse_alike(names: Mapping[int, str]) -> None:
    """Refuse ranks of one name; "" is nobody's."""
    ranks: dict[str, list[int]] = {}
    for rank, name in sorted(names.items()):
        ranks.setdefault(name, []).append(rank)
    shared = next((same for name, same in ranks.items() if name and len(same) > 1), None)
    if shared:
        raise UserError(EXPECTED, f"one that ranks {', '.join(map(str, shared))} share", ACTION)
