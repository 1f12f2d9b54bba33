"""End this process together with its parent."""

import ctypes
import os
import signal
import sys


def end_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends (Linux only; elsewhere no effect)."""
    if sys.platform != "linux":
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)
