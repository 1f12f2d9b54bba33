"""The cores that this process may use, and what they are."""

import contextlib
import os
import platform
from collections.abc import Iterable, Iterator


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
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
