"""Which cores a run reserves: on CPUs the first free ones, on GPUs those near each worker's GPU."""

import contextlib
from collections.abc import Iterator, Sequence

from scalestudy.launch.local import reserve
from scalestudy.machine import cores
from scalestudy.machine.devices import Gpu
from scalestudy.machine.near import core_by_core, shares
from scalestudy.study.point import Point


def run_cores(
    point: Point, gpus: Sequence[Gpu] | None
) -> contextlib.AbstractContextManager[tuple[list[int], bool]]:
    """The cores of all workers of a point, and whether they are its alone.

    Args:
        point: What is to be run.
        gpus: Those that its workers see, in their order; each worker's cores are near its own. None on CPUs.
    """
    count, each = 1 if point.traits.one_device else point.workers, point.launch.cpus_per_worker
    if gpus is None:
        return reserve.cores(cores.granted(), count * each)
    near = [gpus[index].cpus if index < len(gpus) else () for index in range(count)]
    return cores_near(core_by_core(cores.granted()), near, each)


@contextlib.contextmanager
def cores_near(
    available: Sequence[int], near: Sequence[Sequence[int]], each: int
) -> Iterator[tuple[list[int], bool]]:
    """`each` cores for every GPU, the first one's first, and whether all are this run's alone.

    A GPU's own are near it; where another study has those, others, near it if there are any.

    Args:
        available: Cores, in the order in which they are dealt out.
        near: For each GPU the cores near it.
        each: Cores of a GPU.
    """
    planned = shares(available, near, each)
    dealt = {core for share in planned for core in share}
    with contextlib.ExitStack() as held:
        found: list[int] = []
        alone = True
        for share, around in zip(planned, near, strict=True):
            rest = [core for core in available if core not in dealt]
            rest += [core for core in available if core in dealt and core not in share]
            others = [core for core in rest if core in around] + [core for core in rest if core not in around]
            own, only = held.enter_context(reserve.cores([*share, *others], each))
            found += own
            alone = alone and only
        yield found, alone
