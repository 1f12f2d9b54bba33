"""`python -m scalestudy.worker RUN_DIR`: the one command that every launcher starts, once per process."""

import os
import sys
import traceback
from pathlib import Path

from scalestudy.errors import ScalestudyError


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

    from scalestudy.cluster.placement import check_placement
    from scalestudy.cluster.resolve import resolve
    from scalestudy.launch.resources import gpus
    from scalestudy.measure.clock import PhaseClock
    from scalestudy.study.store import RunFolder
    from scalestudy.training.process import process_environment

    clock = PhaseClock(psutil.Process().create_time())
    _die_with_launcher()
    folder = RunFolder(path)
    point, placement = folder.point(), resolve(os.environ)
    device = "cpu" if point.launch.device == "cpu" or not gpus() else "gpu"
    check_placement(
        placement,
        implementation=point.implementation,
        workers=point.workers,
        gpus=gpus() if device == "gpu" else None,
    )
    values, drop = process_environment(point, placement, os.environ, device=device)
    for name in drop:
        print(f"scalestudy: {name} is unset for {point.implementation}", file=sys.stderr)
        del os.environ[name]
    os.environ.update(values)
    with clock.phase("framework"):
        from scalestudy.training.run import run
    run(folder, point, placement, clock, device=device)
    return 0


def _die_with_launcher() -> None:
    """End with the process that started us (Linux), so that no worker outlives its run."""
    parent = os.environ.get("SCALESTUDY_LAUNCHER")
    if parent is None or sys.platform != "linux":
        return
    import ctypes
    import signal

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # TensorFlow's and Horovod's threads may still wait for peers that have already left.
    os._exit(code)
