"""A worker in which only the training is a stand-in: `python -m silent_worker RUN_DIR`, from here.

Its ranks wait for each other at every step, as in an all-reduce, until one of them does what the variable
PLAN says: {"rank": 1, "step": 3, "does": "block"}. Signs are given ten times as often as by a worker.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time

import psutil

from scalestudy import worker
from scalestudy.measure import hang_detection
from scalestudy.training import run

STEPS = 100


def hang(does: str) -> None:
    """Never come back, in one of the ways in which that happens."""
    if does == "block":
        threading.Event().wait()
    if does == "hold":  # C code that keeps the interpreter
        ctypes.PyDLL(None).sleep(600)
    if does == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)


def work(part):
    folder, placement, clock = part.folder, part.placement, part.clock
    plan, heart = json.loads(os.environ["PLAN"]), clock.heart
    counts = [folder.path / f"at-{rank}" for rank in range(placement.size)]
    (folder.path / f"here-{placement.rank}").touch()
    while len(list(folder.path.glob("here-*"))) < placement.size:
        heart.enter("join")
        time.sleep(0.01)
    heart.last = heart.last._replace(number=100)  # alike on all ranks, however long they waited
    for step in range(STEPS):
        heart.enter("input")
        heart.enter("step")
        with open(counts[placement.rank], "ab") as own:
            own.write(b".")
        while any(not each.exists() or each.stat().st_size <= step for each in counts):
            if plan.get("gives_up") and peer_is_lost(folder):
                raise RuntimeError("connection closed by peer")
            time.sleep(0.01)
        heart.step(1, step + 1, "callbacks")
        if (placement.rank, step) == (plan.get("rank"), plan.get("step")):
            # Which step it was is known by a sign, and none is given any more.
            while not any(sign.rank == placement.rank and sign.step for sign in folder.signs()):
                time.sleep(0.01)
            hang(plan["does"])
        time.sleep(0.05)
    if placement.rank == 0:
        (folder.path / "trained").touch()


def peer_is_lost(folder) -> bool:
    """Whether a rank is stopped, and has left out ten signs: then a library gives up on it."""
    signs = folder.signs()
    stopped = [psutil.Process(sign.pid).status() == psutil.STATUS_STOPPED for sign in signs]
    written = [sign.written for sign in signs]
    return any(stopped) and max(written) - min(written) > 10 * hang_detection.EVERY


if __name__ == "__main__":
    hang_detection.EVERY = 0.1
    run.run = work
    code = worker.main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
