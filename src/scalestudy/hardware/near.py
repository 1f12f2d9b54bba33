"""Cores near GPUs: which of those granted each GPU's worker takes, so that none goes to another's memory."""

import contextlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

SYSTEM = Path("/sys/devices/system")
SIBLINGS = ("core_cpus_list", "thread_siblings_list")
"""Files of the kernel that list the threads of a CPU's core, by its age."""


def shares(granted: Sequence[int], near: Sequence[Sequence[int]], each: int) -> list[list[int]]:
    """`each` of the granted CPUs for every GPU: those near it as far as they go, then whatever is left.

    Args:
        granted: Logical CPUs in the order in which they are dealt out.
        near: For each GPU the CPUs near it; none where nothing says them.
        each: CPUs of a GPU.

    Returns:
        For each GPU its CPUs, in the order of `granted`; none twice, and fewer where too few are granted.
    """
    left = list(granted)
    found: list[list[int]] = [[] for _ in near]

    def deal(gpu: int, wanted: Iterable[int]) -> None:
        taken = list(wanted)[: each - len(found[gpu])]
        found[gpu] += taken
        left[:] = [cpu for cpu in left if cpu not in taken]

    # Who has fewest near it chooses first; nobody takes from afar what is still near another.
    for gpu in sorted(range(len(near)), key=lambda gpu: len(set(near[gpu]) & set(granted))):
        deal(gpu, [cpu for cpu in left if cpu in near[gpu]])
    for gpu in range(len(near)):
        deal(gpu, left)
    return [[cpu for cpu in granted if cpu in own] for own in found]


def core_by_core(granted: Iterable[int], system: Path = SYSTEM) -> list[int]:
    """The granted CPUs with the threads of a core beside each other, so that a share has whole cores."""
    return sorted(granted, key=lambda cpu: (_first_of_core(cpu, system), cpu))


def _first_of_core(cpu: int, system: Path) -> int:
    for name in SIBLINGS:
        with contextlib.suppress(OSError, ValueError):
            # "3,67" or "6-7"
            return int(re.split("[,-]", (system / "cpu" / f"cpu{cpu}" / "topology" / name).read_text())[0])
    return cpu
