"""The cores that this process may use, what they are, and which of them each GPU's worker takes."""

import contextlib
import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SYSTEM = Path("/sys/devices/system")
BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Names of such instructions, of x86 and Arm."""


def granted() -> list[int]:
    """Logical CPUs that this process may run on, as the kernel says; all of them where it does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def stay_on(cpus: Iterable[int]) -> None:
    """Run on these CPUs only, and so do the processes started from here; where the system pins none, nothing.

    Raises:
        OSError: If none of them may be used.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


@contextlib.contextmanager
def only_on(cpus: Iterable[int]) -> Iterator[None]:
    """Within, run on these CPUs only, as does what is started there; on all granted ones if there are none.

    Affinity belongs to the calling thread.
    """
    wanted, before = list(cpus), granted()
    if wanted:
        stay_on(wanted)
    try:
        yield
    finally:
        if wanted:
            stay_on(before)


def cpu_model() -> str:
    """The processor, as the kernel names it."""
    return _cpu_line("model name") or platform.processor()


def computes_bfloat16() -> bool:
    """Whether this processor has instructions for bfloat16; without them, float32 is faster."""
    return not BFLOAT16.isdisjoint(_cpu_line("flags", "Features").split())


def _cpu_line(*names: str) -> str:
    """The value of the first line of one of these names in the kernel's description of the processor."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in names:
                    return value.strip()
    except OSError:
        pass
    return ""


def shares(granted: Sequence[int], near: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """`count` of the granted CPUs for every GPU: those near it as far as they go, then whatever is left.

    `near` are the CPUs near each GPU, none where nothing says them. Returned are the CPUs of each, in the
    order of `granted`; none twice, and fewer where too few are granted.
    """
    left = list(granted)
    dealt: list[list[int]] = [[] for _ in near]

    def deal(gpu: int, wanted: Iterable[int]) -> None:
        taken = list(wanted)[: count - len(dealt[gpu])]
        dealt[gpu] += taken
        left[:] = [cpu for cpu in left if cpu not in taken]

    # Who has fewest near it chooses first; nobody takes from afar what is still near another.
    for gpu in sorted(range(len(near)), key=lambda gpu: len(set(near[gpu]) & set(granted))):
        deal(gpu, [cpu for cpu in left if cpu in near[gpu]])
    for gpu in range(len(near)):
        deal(gpu, left)
    return [[cpu for cpu in granted if cpu in share] for share in dealt]


def core_by_core(granted: Iterable[int], system: Path = SYSTEM) -> list[int]:
    """The granted CPUs with the threads of a core beside each other, so that a share has whole cores."""
    return sorted(granted, key=lambda cpu: (_first_of_core(cpu, system), cpu))


def _first_of_core(cpu: int, system: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        text = (system / "cpu" / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text()
        return int(re.split("[,-]", text)[0])  # "3,67" or "6-7"
    return cpu
