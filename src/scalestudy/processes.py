"""Processes of ours that end with the one that started them."""

import os
import signal
import sys


def die_with(parent: int) -> None:
    """End with the process that started us, however it ends (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
