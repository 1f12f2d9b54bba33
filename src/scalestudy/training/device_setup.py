"""Set up an engine on the devices of its process, and check that no two processes share a GPU."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.config.point import Point
from scalestudy.engines.group import Group, Joined, join
from scalestudy.engines.interface import Engine, engine_of
from scalestudy.hardware import cores
from scalestudy.measure.clock import PhaseClock
from scalestudy.plugins.engines import engine_traits
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.text import count_noun
from scalestudy.util.unused_packages import without_unused

LONGEST_UUID = 96
EXPECTED = "a GPU of its own for each process"
ACTION = (
    "The launcher must show every process all GPUs of its node, or each process a different one: look at "
    "--gpu-bind, at gpu_request in the site profile, and at what sets CUDA_VISIBLE_DEVICES. "
    "A node that has lost a GPU looks the same: see `nvidia-smi -L` there."
)


@dataclass(frozen=True)
class OwnPart:
    """This process's part of a run. `device` is "cpu" or "gpu"; `engine` defaults to the point's engine."""

    folder: RunFolder
    point: Point
    placement: Placement
    clock: PhaseClock
    device: str
    gpus: Sequence[str] = ()
    engine: Engine | None = None


def join_workers(part: OwnPart) -> tuple[Engine, Joined]:
    """Set up the engine on this process's cores and GPUs, join the other workers, and return both."""
    point = part.point
    clock = part.clock
    device = part.device
    with clock.phase("framework"), without_unused(engine_traits(point.engine).unused):
        engine = part.engine or engine_of(point.engine)
        set_up_engine(
            engine,
            point,
            threads=len(cores.granted()),
            device=device,
            gpus=part.gpus,
        )
    with clock.phase("join"):
        joined = join(
            point.implementation,
            part.placement,
            workers=point.workers,
            device=device,
            communication=point.launch.communication,
        )
    return engine, joined


def set_up_engine(
    engine: Engine,
    point: Point,
    *,
    threads: int,
    device: str,
    gpus: Sequence[str],
) -> None:
    """Set up an engine before any computation, and check that it lists the GPUs it was given.

    CUDA_VISIBLE_DEVICES names the GPUs by UUID and CUDA shows no others, so comparing their number is enough.

    Raises:
        RunError: If the numbers differ; names the likely reason.
    """
    engine.set_up(point, threads=threads, device=device)
    if device != "gpu":
        return
    listed = engine.devices(device)
    if len(listed) == len(gpus):
        return
    if len(listed) > len(gpus):
        why = "more GPUs than it was shown"
        action = "Do not set CUDA_VISIBLE_DEVICES in the task file."
    elif len(gpus) > 1 and any(name.startswith("MIG-") for name in gpus):
        why = "CUDA shows a process one MIG instance and nothing beside it"
        action = "Use a strategy with one process per worker (horovod, multiworker), or undivided GPUs."
    else:
        why, action = engine.why_missing()
    raise RunError(
        f"the engine to list {count_noun(len(gpus), 'GPU')}: {', '.join(gpus)}",
        f"{', '.join(listed) or 'none'}: {why}",
        action,
    )


def refuse_shared_gpus(group: Group, uuids: Sequence[str]) -> None:
    """Raise an error if two processes compute on the same GPU, which no process can detect by itself.

    Slurm gives one GPU to several tasks with `--gpu-bind=single:2` or `map_gpu:0`; wrapper scripts may do so
    by mistake. The processes compare the UUIDs of their GPUs in host memory, before NCCL would refuse.

    Raises:
        UserError: On every rank, if two ranks share a GPU.
    """
    if group.size == 1:
        return
    first = ""
    if uuids:
        first = uuids[0]
    # Of one length, as all ranks gather them in one array.
    (names,) = group.gather([np.array([first.encode()], f"S{LONGEST_UUID}")])
    ranks: dict[str, list[int]] = {}
    for rank, name in enumerate(names.tolist()):
        ranks.setdefault(name.decode(), []).append(rank)
    for uuid, same in ranks.items():
        if uuid and len(same) > 1:
            sharing = ", ".join(map(str, same))
            raise UserError(EXPECTED, f"one that ranks {sharing} share", ACTION)
