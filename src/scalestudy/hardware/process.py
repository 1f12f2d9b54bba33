"""Ends of this process: together with its parent, or without waiting for its threads."""

import ctypes
import os
import signal
import sys
from typing import NoReturn


def end_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends (Linux only; elsewhere no effect)."""
    if sys.platform != "linux":
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)


def leave(code: int) -> NoReturn:
    """End this process at once: threads of a framework may still wait for peers that have already left."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
