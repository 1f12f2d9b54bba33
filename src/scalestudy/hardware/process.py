"""Ending this process with the one that started it."""

import ctypes
import os
import signal
import sys


def end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends (Linux; elsewhere nothing)."""
    if sys.platform != "linux":
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)
