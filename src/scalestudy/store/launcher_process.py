"""The process that started the workers of a run, and whether it is alive."""

import os
import socket
import time
from pathlib import Path

import psutil

from scalestudy.store.records import Record

REMOTE_SILENCE = 60.0
"""Seconds without progress after which a run on another host counts as interrupted."""


class LauncherProcess(Record):
    """`launcher.json`: a process, identified such that a later process with the same pid differs."""

    pid: int
    host: str
    started: str
    """Boot id of the host and start of the process since boot in clock ticks, from the kernel."""
    written: float
    """Unix time of this record."""


def this_process() -> LauncherProcess:
    """Identify this process."""
    pid = os.getpid()
    return LauncherProcess(
        pid=pid,
        host=socket.gethostname(),
        started=_start(pid) or "",
        written=time.time(),
    )


def is_alive(process: LauncherProcess, last_sign: float | None = None) -> bool:
    """Whether a process is still running.

    For a process on another host, `last_sign` decides: the Unix time of the run's latest progress.
    """
    if process.host == socket.gethostname():
        # A pid alone may be another process's by now.
        return _start(process.pid) == process.started
    # Process tables of other hosts cannot be read.
    return is_recent(max(process.written, last_sign or 0.0))


def is_recent(sign: float) -> bool:
    """Whether a sign of life at this Unix time is recent.

    The clock may be another host's. This decides which state is shown; what is done depends on the study's
    lock, and on the queue's answers.
    """
    return time.time() - sign < REMOTE_SILENCE


def _start(pid: int) -> str | None:
    try:
        process = psutil.Process(pid)
        # A zombie has ended, even if its parent never reaps it.
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        # Relative to the boot, the kernel's own value, which does not change when the clock is set.
        ticks = (process.create_time() - psutil.boot_time()) * os.sysconf("SC_CLK_TCK")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (psutil.Error, OSError):
        return None
    return f"{boot}/{round(ticks)}"
