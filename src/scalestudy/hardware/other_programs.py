"""How much of some cores other programs used, and which programs they were."""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

import psutil

NAMED = 3
"""Most programs that are named."""
LEAST_NAMED = 0.05
"""Cores that a program must have used to be named."""


@dataclass(frozen=True)
class CoreUse:
    """CPU time up to now.

    Attributes:
        when: Monotonic time in seconds.
        busy: Seconds that the cores have been busy.
        children: CPU seconds of all ended child processes of this process, with their descendants.
        processes: CPU seconds of each other process, by process id and start.
    """

    when: float
    busy: float
    children: float
    processes: dict[tuple[int, float], float]


@dataclass(frozen=True)
class OtherPrograms:
    """What other programs used over an interval: a share of the cores, and the programs in words."""

    share: float
    names: str


def core_use(cores: Collection[int]) -> CoreUse:
    """Return the CPU time used so far on these cores."""
    own = os.times()
    processes = {
        (process.pid, process.info["create_time"]): sum(process.info["cpu_times"][:2])
        for process in psutil.process_iter(["create_time", "cpu_times"])
        if process.info["cpu_times"] and process.pid != os.getpid()
    }
    children = own.children_user + own.children_system
    return CoreUse(time.monotonic(), _busy(cores), children, processes)


def other_programs(before: CoreUse, cores: Collection[int]) -> OtherPrograms:
    """Return what programs other than this process's ended children used of these cores since `before`."""
    now = core_use(cores)
    seconds = max(now.when - before.when, 1e-9)
    others = max(0.0, now.busy - before.busy - (now.children - before.children))
    used = {key: (now.processes[key] - before.processes.get(key, 0.0)) / seconds for key in now.processes}
    most = sorted(used, key=lambda key: -used[key])[:NAMED]
    names = [f"{_program(key[0])}: {used[key]:.1f} cores" for key in most if used[key] >= LEAST_NAMED]
    return OtherPrograms(min(1.0, others / (seconds * len(cores))), "; ".join(names))


def _busy(cores: Collection[int]) -> float:
    every = psutil.cpu_times(percpu=True)
    idle = ("idle", "iowait", "guest", "guest_nice")  # guests also count as user
    times = [every[core]._asdict() for core in cores if core < len(every)]
    return float(sum(value for core in times for name, value in core.items() if name not in idle))


def _program(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return f"{process.name()} of {process.username()} ({pid})"
    except psutil.Error:
        return f"process {pid}, which has ended"
