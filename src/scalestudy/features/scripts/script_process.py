"""A process of `scalestudy launch`; its arguments are a folder, a script and the script's arguments."""

import os
import runpy
import sys
import time
import traceback
from pathlib import Path

from scalestudy.hardware.own_process import leave
from scalestudy.util.errors import ScalestudyError
from scalestudy.util.tracebacks import raised_at, user_frame

LOOK = 0.02
"""Seconds between two checks whether the other processes are done."""
LEAVE_AFTER = 60.0
"""Seconds that a process waits for the others. One that waits for it in a sum fails only when it has gone."""


def main(arguments: list[str]) -> int:
    """Run a script as Python would, in a supervised process, and return its exit code."""
    folder, script, *rest = arguments
    from scalestudy.worker import die_with_launcher, join_network

    try:
        join_network()  # before anything starts a thread
        die_with_launcher()
        from scalestudy.cluster.resolve import resolve
        from scalestudy.features.scripts.join import torchrun_variables
        from scalestudy.launch.supervise import supervise
        from scalestudy.store.run_folder import RunFolder

        placement = resolve(os.environ)
        os.environ.update(torchrun_variables(placement))
        return supervise(
            RunFolder(folder),
            placement.rank,
            lambda: _run(Path(folder), script, rest, placement.rank, placement.size),
            stops=(),  # a script does not check for requests to stop
        )
    except ScalestudyError as error:
        place = user_frame(raised_at(error.__traceback__))
        print(f"scalestudy: {error}{f' ({place})' if place else ''}", file=sys.stderr)
        return error.exit_code
    except SystemExit as error:
        from scalestudy.launch.supervise import exit_code

        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return exit_code(error) or 1
    except Exception as error:
        print_from(script, error)
        return 1


def print_from(script: str, error: Exception) -> None:
    """Print an error as Python does for a script, without the frames that called the script."""
    below = error.__traceback__
    while below is not None and below.tb_frame.f_code.co_filename != script:
        below = below.tb_next
    unread = isinstance(error, SyntaxError) and error.filename == script  # no frame of the script itself
    traceback.print_exception(type(error), error, None if unread else below or error.__traceback__)


def _run(folder: Path, script: str, arguments: list[str], rank: int, size: int) -> int:
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
    from scalestudy.features.scripts.script_workers import finish

    finish()
    done_file(folder, rank).touch()
    deadline = time.monotonic() + LEAVE_AFTER
    while not all(done_file(folder, other).exists() for other in range(size)):
        time.sleep(LOOK)  # another process's last sum may still read from this one
        if time.monotonic() > deadline:
            break
    return 0


def done_file(folder: Path, rank: int) -> Path:
    """Return the file whose presence means that this rank has ended the script."""
    return folder / f"done-{rank}"


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
