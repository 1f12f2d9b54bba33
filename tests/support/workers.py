"""A small replacement for our worker that follows a plan, so that jobs take a second.

`wrapper` in the site profile puts it before the worker's command, whose last argument is the run folder. The
plan is `plan.json` beside the study's folder: {POINT: {"seconds": 1, "exit": 0, "checkpoint": true}}; "*"
applies to all points, and "resumed" holds another plan for a run that finds a checkpoint. With {"hold": true}
it works until there is a file `go` beside the plan. When asked to stop, it leaves a checkpoint and no result.
"""

import json
import os
import sys
import time

from scalestudy.store.records import Progress, Result, Stopped
from scalestudy.store.run_folder import RunFolder


def work(run: RunFolder, plan: dict) -> int:
    """Write the files of a worker, and append its start and end times to `spans` beside the plan."""
    point = run.point()
    print(f"{point.name} at work", flush=True)
    print(
        f"nodes shared: {os.environ.get('SCALESTUDY_NODES_SHARED', 'not said')}",
        flush=True,
    )
    began = time.time()
    if plan.get("checkpoint"):
        run.checkpoint.touch()
    if run.checkpoint.exists() and plan.get("resumed"):
        plan = plan["resumed"]
    beside = run.path.parents[2].with_name
    while (
        not beside("go").exists()
        if plan.get("hold")
        else time.time() < began + plan.get("seconds", 0.5)
    ):
        if run.stop.exists():
            run.checkpoint.touch()
            run.write_stopped(Stopped(epoch=2, step=1))
            return 0
        now = time.time()
        run.write_progress(
            Progress(
                phase="training",
                epoch=2,
                epochs=4,
                step=1,
                steps=2,
                throughput=10.0,
                updated=now,
            )
        )
        time.sleep(0.2)
    with open(beside("spans"), "a") as spans:
        spans.write(f"{point.name} {began} {time.time()}\n")
    if plan.get("exit"):
        print("ValueError: it was to fail", flush=True)
        return int(plan["exit"])
    run.write_result(
        Result(
            name=point.name,
            strategy=point.strategy,
            implementation=point.implementation,
            workers=point.workers,
            seed=point.seed,
            per_worker_batch=1,
            global_batch=point.workers,
            epochs=4,
            updates=4,
            samples_processed=4,
            training_samples=1,
            throughput=10.0 * point.workers,
            steady_epochs=3,
            training_seconds=1.0,
            wall_seconds=1.0,
            phases={},
            metric="accuracy",
            quality=0.5,
            best_quality=0.5,
            best_epoch=1,
            parameters=1,
            weights_digest="0",
            finished="2020-01-01",
        )
    )
    return 0


if __name__ == "__main__":
    folder = RunFolder(sys.argv[-1], os.environ["SCALESTUDY_SUBMISSION"])
    file = folder.path.parents[2].with_name("plan.json")
    plans = json.loads(file.read_text()) if file.exists() else {}
    rank = int(os.environ.get("SLURM_PROCID", "0"))
    sys.stdout = folder.log(rank).open("a")
    sys.exit(
        work(folder, plans.get(folder.point().name, plans.get("*", {})))
        if rank == 0
        else 0
    )
