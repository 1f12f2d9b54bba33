"""`python -m scalestudy.worker RUN_DIR`: the one command that every launcher starts, once per process."""

from __future__ import annotations

import io
import os
import socket
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.errors import ScalestudyError, UserError
from scalestudy.processes import die_with

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement
    from scalestudy.measure.clock import PhaseClock
    from scalestudy.study.point import Point


def main(arguments: list[str]) -> int:
    """Compute this process's part of a run. Everything is learnt from RUN_DIR and the environment."""
    if len(arguments) != 1:
        print("usage: python -m scalestudy.worker RUN_DIR", file=sys.stderr)
        return 2
    try:
        return _work(Path(arguments[0]))
    except ScalestudyError as error:
        print(f"scalestudy: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except Exception:
        traceback.print_exc()
        return 1


def _work(path: Path) -> int:
    import psutil

    from scalestudy.cluster.resolve import resolve
    from scalestudy.measure.clock import PhaseClock

    clock = PhaseClock(psutil.Process().create_time())
    _die_with_launcher()
    placement = resolve(os.environ)
    if not path.is_dir():
        raise UserError(
            "the folder of a run, seen by all nodes",
            f"{str(path)!r}, which is no folder on {socket.gethostname()}",
            "Keep studies on a file system that the nodes share.",
        )
    _take_output(path, placement)
    if (path / "check.json").exists():
        from scalestudy.check.rank import run as check

        return check(path, placement)
    return _train(path, placement, clock)


def _train(path: Path, placement: Placement, clock: PhaseClock) -> int:
    from scalestudy.cluster.environment import own_gpus, process_environment
    from scalestudy.cluster.placement import check_placement
    from scalestudy.machine.devices import gpus, visible_gpus
    from scalestudy.study.store import RunFolder
    from scalestudy.training.watchdog import Watchdog

    folder = RunFolder(path)
    point = folder.point()
    watchdog = Watchdog(folder, placement.rank, placement.size, clock.heart, point.launch.silent_after)
    watchdog.start()
    device = "cpu" if point.launch.device == "cpu" or not gpus() else "gpu"
    check_placement(
        placement,
        strategy=point.traits,
        workers=point.workers,
        gpus=gpus() if device == "gpu" else None,
    )
    _pin(point, placement)
    own: list[str] = []
    if device == "gpu":
        devices = point.traits.workers_at_once(point.workers)
        own = own_gpus(os.environ, visible_gpus(os.environ), local_rank=placement.local_rank, devices=devices)
    changes = process_environment(os.environ, gpus=own, meets=point.traits.meets, placement=placement)
    for name in changes.unset:
        print(f"scalestudy: {name} is unset for {point.implementation}", file=sys.stderr)
        del os.environ[name]
    os.environ.update(changes.values)
    with clock.phase("framework"):
        from scalestudy.training.run import run
    try:
        run(folder, point, placement, clock, device=device)
    except Exception as error:
        if not isinstance(error, ScalestudyError):
            watchdog.failed()
        raise
    return 0


def _take_output(path: Path, placement: Placement) -> None:
    """Send output to the log of this rank, where no launcher has done so."""
    from scalestudy.cluster.output import keeps_own_log
    from scalestudy.study.store import RunFolder

    if not keeps_own_log(placement, os.environ):
        return
    log = RunFolder(path).log(placement.rank)
    print(
        f"scalestudy: rank {placement.rank} of {placement.size} on {socket.gethostname()}: {log}", flush=True
    )
    with open(log, "ab") as file:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _pin(point: Point, placement: Placement) -> None:
    """Stay on this process's own cores, where its launcher has granted more."""
    from scalestudy.cluster.cores import own_cores
    from scalestudy.machine import cores

    if "SCALESTUDY_LAUNCHER" in os.environ:
        return
    need = point.launch.cpus_per_worker * point.traits.workers_at_once(point.workers)
    own = own_cores(cores.granted(), need, placement)
    if own is not None:
        cores.stay_on(own)
    os.environ.setdefault("OMP_NUM_THREADS", str(len(cores.granted())))


def _die_with_launcher() -> None:
    """End with the process that started us (Linux), so that no worker outlives its run."""
    if "SCALESTUDY_LAUNCHER" in os.environ:
        die_with(int(os.environ["SCALESTUDY_LAUNCHER"]))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # TensorFlow's and Horovod's threads may still wait for peers that have already left.
    os._exit(code)
