"""A process of `scalestudy launch`; its arguments are a folder, a script and the script's arguments.

The folder is that of the launcher; "" if srun or mpirun has started the process, which then supervises
itself.
"""

import contextlib
import os
import runpy
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scalestudy.hardware.own_process import exit_at_once
from scalestudy.util.errors import ScalestudyError
from scalestudy.util.tracebacks import raised_at, user_frame

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement

LOOK = 0.02
"""Seconds between two checks whether the other processes are done."""
LEAVE_AFTER = 60.0
"""Seconds that a process waits for the others. One that waits for it in a sum fails only when it has gone."""


def main(arguments: list[str]) -> int:
    """Run a script as Python would, in a supervised process, and return its exit code."""
    folder, script, *rest = arguments
    from scalestudy.worker import die_with_launcher, join_network

    try:
        # Before anything starts a thread: the kernel lets only a process of one thread join a user namespace.
        join_network()
        die_with_launcher()
        from scalestudy.cluster.resolve import resolve
        from scalestudy.features.launch.join import keep_placement, torchrun_variables
        from scalestudy.launch.supervise import supervise
        from scalestudy.store.run_folder import RunFolder

        placement = resolve(os.environ)
        keep_placement(placement)
        os.environ.update(torchrun_variables(placement))
        if not folder:
            with _meeting(placement):
                return _run(None, script, rest, placement)

        def work() -> int:
            return _run(Path(folder), script, rest, placement)

        # No signal asks for a stop: a script has no loop of ours that would check for it.
        return supervise(RunFolder(folder), placement.rank, work, stops=())
    except ScalestudyError as error:
        place = user_frame(raised_at(error.__traceback__))
        where = ""
        if place:
            where = f" ({place})"
        print(f"scalestudy: {error}{where}", file=sys.stderr)
        return error.exit_code
    except SystemExit as error:
        from scalestudy.launch.supervise import exit_code_of

        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return exit_code_of(error) or 1
    except Exception as error:
        print_from(script, error)
        return 1


def print_from(script: str, error: Exception) -> None:
    """Print an error as Python does for a script, without the frames that called the script."""
    below = error.__traceback__
    while below is not None and below.tb_frame.f_code.co_filename != script:
        below = below.tb_next
    frames = below or error.__traceback__
    # A script that Python could not read has no frame of its own.
    if isinstance(error, SyntaxError) and error.filename == script:
        frames = None
    traceback.print_exception(type(error), error, frames)


@contextlib.contextmanager
def _meeting(placement: "Placement") -> Iterator[None]:
    """Within the context, the processes of a job share a secret and rank 0's address in a folder."""
    from scalestudy.cluster.private_files import meeting_in, secret_set
    from scalestudy.features.launch.join import OUT

    # Beside the results, since that folder is one that all nodes see.
    beside = Path(os.environ.get(OUT) or "studies/script").absolute().parent
    folder = beside / f".launch-{placement.port}"
    # It holds the secret of the run.
    folder.mkdir(
        mode=0o700,
        parents=True,
        exist_ok=True,
    )
    try:
        with secret_set(folder, placement), meeting_in(folder, placement):
            yield
    finally:
        if placement.rank == 0:
            shutil.rmtree(folder, ignore_errors=True)


def _run(
    folder: Path | None,
    script: str,
    arguments: list[str],
    placement: "Placement",
) -> int:
    sys.argv = [script, *arguments]
    # As Python does for a script that it is called with; `runpy` does not.
    sys.path.insert(0, str(Path(script).resolve().parent))
    _set_environment(Path(script))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
    from scalestudy.features.launch.script_workers import finish

    finish()
    if folder is None:
        return 0
    done_file(folder, placement.rank).touch()
    deadline = time.monotonic() + LEAVE_AFTER
    # Another process's last sum may still read from this one.
    while not _all_done(folder, placement.size):
        time.sleep(LOOK)
        if time.monotonic() > deadline:
            break
    return 0


def _all_done(folder: Path, processes: int) -> bool:
    for rank in range(processes):
        if not done_file(folder, rank).exists():
            return False
    return True


def _set_environment(script: Path) -> None:
    """Set what the strategy of a TensorFlow script needs; PyTorch's processes have torchrun's variables."""
    from scalestudy.features.launch.join import gpus_of_start, start_of
    from scalestudy.plugins.strategies import SCRIPT_STRATEGY, traits

    start = start_of(os.environ, {})
    if start.strategy == SCRIPT_STRATEGY:
        return
    from scalestudy.cluster.placement import check_placement
    from scalestudy.cluster.worker_environment import own_gpus
    from scalestudy.engines.tensorflow.script_environment import set_environment
    from scalestudy.features.launch.script_strategy import find_strategy
    from scalestudy.hardware.devices import showing, visible_gpus

    placement = start.placement
    gpus = gpus_of_start(start)
    check_placement(
        placement,
        strategy=traits(start.strategy),
        workers=start.workers,
        gpus=gpus,
    )
    # By itself, TensorFlow takes the memory of every GPU that it sees. A script that chooses its own by its local
    # rank must see all of them.
    if (
        gpus
        and placement.size > 1
        and not find_strategy(script, start.strategy).chooses_gpu
    ):
        place = placement.gpu_place(gpus)
        own = own_gpus(os.environ, visible_gpus(os.environ), local_rank=place)
        os.environ.update(showing(own))
    device: Literal["cpu", "gpu"] = "cpu"
    if gpus:
        device = "gpu"
    set_environment(
        start.strategy,
        placement,
        workers=start.workers,
        device=device,
        gpus=gpus or 0,
    )


def done_file(folder: Path, rank: int) -> Path:
    """Return the file whose presence means that this rank has ended the script."""
    return folder / f"done-{rank}"


if __name__ == "__main__":
    exit_at_once(main(sys.argv[1:]))
