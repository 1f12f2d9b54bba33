"""Prints as JSON what this Python is, and then ends as told: `python tell_start.py [ACTION …]`."""

import atexit
import gc
import json
import os
import resource
import signal
import sys
import threading
from typing import Any

import numpy as np
import psutil
from threadpoolctl import threadpool_info


def facts() -> dict[str, Any]:
    """Return what a program can find out about the start of its Python."""
    process = psutil.Process()
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return {
        "is_fork": "become_python" in sys.modules,
        "command": process.cmdline(),
        "words": (sys.argv, sys.orig_argv),
        "main": (__name__, sys.modules["__main__"].__dict__.get("__file__")),
        "path": sys.path,
        "folder": os.getcwd(),
        "variables": dict(os.environ),
        "parent": os.getppid(),
        "leads": (os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()),
        "cores": sorted(os.sched_getaffinity(0)),
        "handlers": {
            int(number): str(how).partition(" at ")[0]
            for number, how in handlers.items()
        },
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "streams": [
            (
                stream.encoding,
                stream.errors,
                stream.line_buffering,
                stream.write_through,
            )
            for stream in (sys.stdout, sys.stderr)
        ],
        "files": sorted(
            {int(name) for name in os.listdir("/proc/self/fd")} - {os_fd()}
        ),
        "limits": [
            resource.getrlimit(which)
            for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS)
        ],
        "threads": (
            threading.active_count(),
            sorted({pool["num_threads"] for pool in threadpool_info()}),
        ),
        "collects": (gc.isenabled(), gc.get_threshold()),
        "writes_bytecode": not sys.dont_write_bytecode,
    }


def os_fd() -> int:
    """Return the descriptor that lists descriptors."""
    folder = os.open("/proc/self/fd", os.O_RDONLY)
    os.close(folder)
    return folder


def end(does: str) -> None:
    """End as told."""
    match does.split():
        case ["exit", number] if number.isdigit():
            sys.exit(int(number))
        case ["exit", words]:
            sys.exit(words)
        case ["raise"]:
            raise ValueError("it was to fail")
        case ["interrupt"]:
            raise KeyboardInterrupt
        case ["kill"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["wait"]:
            sys.stdin.read()
        case ["later"]:
            threading.Thread(target=lambda: print("a thread", file=sys.stderr)).start()
            atexit.register(print, "at exit", file=sys.stderr)
        case ["draw"]:
            print(np.random.random(), file=sys.stderr)


if __name__ == "__main__":
    print(json.dumps(facts()), flush=True)
    for word in sys.argv[1:]:
        end(word)
