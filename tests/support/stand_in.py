"""The command line with stand-ins for its workers: `python -m stand_in run STUDY …`, from this folder.

Launcher, worker start, placement, logs and shutdown are real. Only training is replaced by a few lines that
follow a plan, so that tests of processes and signals start no framework. The plan is `plan.json` beside the
results, as for `workers.py`, with more actions: {"raise": "words"}; {"python": "text", "rank": 1}, a task
file that this rank executes while the others wait; and {"meet": true}: two ranks connect at the port of their
run and exchange its path. In a job, `wrapper` in the site profile puts this file before the worker's command.
"""

import json
import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from scalestudy import worker
from scalestudy.store.run_folder import RunFolder
from scalestudy.util import modules
from workers import work

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement


def train(run: RunFolder, placement: "Placement", clock: object) -> int:
    """Follow the plan instead of training."""
    file = run.path.parents[2].with_name("plan.json")
    plans = json.loads(file.read_text()) if file.exists() else {}
    plan: dict[str, Any] = plans.get(run.point().name, plans.get("*", {}))
    if "raise" in plan:
        raise RuntimeError(plan["raise"])
    if "python" in plan:
        if placement.rank == plan.get("rank", 0):
            exec(compile(plan["python"], "task.py", "exec"), {"run": run})
        while True:
            time.sleep(600)
    if plan.get("meet"):
        assert meet(placement, str(run.path)) == str(run.path), (
            "met the worker of another run"
        )
    if placement.rank == 0:
        return work(run, plan)
    until = time.time() + plan.get("seconds", 0.5)
    while time.time() < until and not run.stop.exists():
        time.sleep(0.05)
    return 0


def meet(placement: "Placement", name: str) -> str:
    """Exchange names with the other of two ranks at the port of the run; return the other's."""
    place = ("127.0.0.1", placement.port)
    if placement.rank == 0:
        with socket.create_server(place) as server, server.accept()[0] as other:
            other.sendall(name.encode() + b"\n")
            return other.makefile().readline().strip()
    deadline = time.monotonic() + 600
    while True:
        try:
            with socket.create_connection(place) as other:
                other.sendall(name.encode() + b"\n")
                return other.makefile().readline().strip()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


if __name__ == "__main__":
    if "SCALESTUDY_LAUNCHER" in os.environ or "SLURM_PROCID" in os.environ:
        code = worker.main(sys.argv[-1:], train)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    modules.WORKER = "stand_in"
    from scalestudy.cli import main

    main()
