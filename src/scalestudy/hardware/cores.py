"""The cores that this process may use: properties, distribution over GPUs, and use by other programs."""

import contextlib
import os
import platform
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import psutil

SYSTEM = Path("/sys/devices/system")
NOT_BUSY = ("idle", "iowait", "guest", "guest_nice")
"""Kinds of a core's time in which it does nothing, or that are counted twice: guests' also as user's."""


def granted() -> list[int]:
    """Return the logical CPUs that this process may run on; all if the system does not provide them."""
    # Not os.cpu_count(), which counts the machine's: Slurm and taskset grant fewer.
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin_to(cpus: Iterable[int]) -> None:
    """Restrict this thread, and processes that it starts, to these CPUs; no effect without support.

    Raises:
        OSError: If none of them may be used.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


@contextlib.contextmanager
def pinned_to(cpus: Iterable[int]) -> Iterator[None]:
    """Within the context, restrict the calling thread, and processes that it starts, to these CPUs.

    Without CPUs, there is no restriction.
    """
    wanted = list(cpus)
    if not wanted:
        yield
        return
    before = granted()
    pin_to(wanted)
    try:
        yield
    finally:
        pin_to(before)


def cpu_model() -> str:
    """Return the name of the processor."""
    # On Linux, platform.processor() is empty or only the architecture.
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor()


def deal_cores(
    granted: Sequence[int],
    near: Sequence[Sequence[int]],
    count: int,
) -> list[list[int]]:
    """Assign `count` of the granted CPUs to every GPU: first those near it, then any that are left.

    `near` are the CPUs near each GPU; empty if unknown. The CPUs of each GPU are returned in the order of
    `granted`. No CPU is assigned twice; GPUs get fewer if too few are granted.
    """
    left = list(granted)
    dealt: list[list[int]] = [[] for _ in near]

    def deal(gpu: int, wanted: Sequence[int]) -> None:
        missing = count - len(dealt[gpu])
        taken = wanted[:missing]
        dealt[gpu] += taken
        for cpu in taken:
            left.remove(cpu)

    def near_and_granted(gpu: int) -> int:
        both = set(near[gpu]).intersection(granted)
        return len(both)

    every_gpu = range(len(near))
    # The GPU with the fewest near CPUs chooses first; distant CPUs are assigned only after all near ones.
    for gpu in sorted(every_gpu, key=near_and_granted):
        deal(gpu, [cpu for cpu in left if cpu in near[gpu]])
    for gpu in every_gpu:
        deal(gpu, left)
    # In the order of `granted`, whose neighbours are threads of one core.
    order = list(granted).index
    return [sorted(share, key=order) for share in dealt]


def core_by_core(granted: Iterable[int], system: Path = SYSTEM) -> list[int]:
    """Sort the granted CPUs so that the threads of a core are adjacent and a share has whole cores."""
    by_number = sorted(granted)
    return sorted(by_number, key=lambda cpu: _first_of_core(cpu, system))


def _first_of_core(cpu: int, system: Path) -> int:
    """Return the lowest CPU of the core that a CPU is a thread of."""
    topology = system / "cpu" / f"cpu{cpu}" / "topology"
    # Containers and other systems may have no such file: then each CPU counts as a core.
    with contextlib.suppress(OSError, ValueError):
        text = (topology / "thread_siblings_list").read_text()
        first, *_ = re.split("[,-]", text)  # "3,67" or "6-7"
        return int(first)
    return cpu


def use_by_others(cores: Collection[int]) -> tuple[float, float]:
    """Return the monotonic time, and the seconds that these cores were busy so far.

    The CPU time of ended child processes of this process, with their descendants, does not count.
    """
    own = os.times()
    now = time.monotonic()
    busy = _busy(cores)
    # The kernel adds a child's time to its parent's only once it has been waited for.
    return now, busy - own.children_user - own.children_system


def share_of_others(before: tuple[float, float], cores: Collection[int]) -> float:
    """Return the share of these cores' time that others used since `before`, from `use_by_others`."""
    began, used_before = before
    now, used = use_by_others(cores)
    seconds = max(now - began, 1e-9)
    available = seconds * len(cores)
    # The kernel counts in ticks, so that short times may give shares beyond 0 and 1.
    used_since = max(0.0, used - used_before)
    return min(1.0, used_since / available)


def _busy(cores: Collection[int]) -> float:
    """Return the seconds that these cores were busy since the machine was started."""
    every = psutil.cpu_times(percpu=True)
    seconds = 0.0
    for core in cores:
        if core >= len(every):
            continue
        times = every[core]._asdict()
        for name, value in times.items():
            if name not in NOT_BUSY:
                seconds += value
    return seconds
