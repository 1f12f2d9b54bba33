"""A worker whose training is replaced: `python -m silent_worker RUN_DIR`, from this folder.

Its ranks wait for each other at every step, as in an all-reduce, until one of them performs the action in the
variable PLAN: {"rank": 1, "step": 3, "does": "block"}. Heartbeats are ten times as frequent as in a worker.
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
from scalestudy.measure import watchdog
from scalestudy.training import rank_run

STEPS = 100
WORK = ("input", "step", "callbacks")


def hang(does: str) -> None:
    """Hang in one of several ways."""
    if does == "block":
        threading.Event().wait()
    if does == "hold":  # C code that keeps the GIL
        ctypes.PyDLL(None).sleep(600)
    if does == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)


def work(part):
    folder, placement, clock = part.folder, part.placement, part.clock
    plan, heartbeat = json.loads(os.environ["PLAN"]), clock.heartbeat
    counts = [folder.path / f"at-{rank}" for rank in range(placement.size)]
    (folder.path / f"here-{placement.rank}").touch()
    while len(list(folder.path.glob("here-*"))) < placement.size:
        heartbeat.enter("join")
        time.sleep(0.01)
    heartbeat.last = heartbeat.last._replace(
        number=100
    )  # the same on all ranks, however long they waited
    for step in range(STEPS):
        heartbeat.enter("input")
        heartbeat.enter("step")
        with open(counts[placement.rank], "ab") as own:
            own.write(b".")
        while any(not each.exists() or each.stat().st_size <= step for each in counts):
            if plan.get("gives_up") and peer_is_lost(folder):
                raise RuntimeError("connection closed by peer")
            time.sleep(0.01)
        heartbeat.step(1, step + 1, "callbacks")
        if (placement.rank, step) == (plan.get("rank"), plan.get("step")):
            # Wait for a heartbeat that reports this step; none follows it.
            while not any(
                sign.rank == placement.rank and sign.step for sign in folder.signs()
            ):
                time.sleep(0.01)
            hang(plan["does"])
        time.sleep(0.05)
    if placement.rank == 0:
        (folder.path / "trained").touch()


def peer_is_lost(folder) -> bool:
    """Whether a rank is stopped and has missed ten heartbeats, so that a library would give up on it."""
    signs = folder.signs()
    stopped = [
        psutil.Process(sign.pid).status() == psutil.STATUS_STOPPED for sign in signs
    ]
    written = [sign.written for sign in signs]
    return any(stopped) and max(written) - min(written) > 10 * watchdog.EVERY


def due_after(mark, progress_timeout):
    """Return the time limit of a mark; a start has as long as a busy machine needs."""
    return (
        600 if mark.phase not in ("join", *WORK) else ordinary(mark, progress_timeout)
    )


if __name__ == "__main__":
    watchdog.EVERY = 0.1
    ordinary, watchdog.due_after = watchdog.due_after, due_after
    rank_run.run_synchronous = work
    code = worker.main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
