"""The process that started the workers of a run, and whether it is still alive."""

import os
import socket
import time
from pathlib import Path

import psutil

from scalestudy.study.records import Record

REMOTE_SILENCE = 60.0
"""Seconds without a sign after which a run on another host counts as interrupted."""


class LauncherProcess(Record):
    """`launcher.json`: a process, named so that another one with a recycled number is not taken for it."""

    pid: int
    host: str
    started: str
    """Boot of the host and the process's start in it (clock ticks), as the kernel says."""
    written: float
    """Unix time of this record."""


def this_process() -> LauncherProcess:
    """This process."""
    pid = os.getpid()
    return LauncherProcess(pid=pid, host=socket.gethostname(), started=_start(pid) or "", written=time.time())


def is_alive(process: LauncherProcess, last_sign: float | None = None) -> bool:
    """Whether a process still runs.

    Args:
        process: The process.
        last_sign: Unix time of the run's latest progress, all there is to go by on another host.
    """
    if process.host == socket.gethostname():
        return _start(process.pid) == process.started
    return is_recent(max(process.written, last_sign or 0.0))


def is_recent(sign: float) -> bool:
    """Whether a sign of life at this Unix time is recent enough to go by."""
    return time.time() - sign < REMOTE_SILENCE


def _start(pid: int) -> str | None:
    try:
        process = psutil.Process(pid)
        # A zombie has ended; whoever should reap it may never do so.
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        # Counted from the boot it is the kernel's own figure, which setting the clock does not change.
        ticks = (process.create_time() - psutil.boot_time()) * os.sysconf("SC_CLK_TCK")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (psutil.Error, OSError):
        return None
    return f"{boot}/{round(ticks)}"
