"""Running a command of a queue: with a time limit, and with nothing of it left behind."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from scalestudy.errors import UserError


class ProgramAbsent(Exception):
    """There is no such program."""


class ProgramSilent(Exception):
    """It took too long."""


def answer(command: Sequence[str], environment: Mapping[str, str], limit: float) -> tuple[int, str, str]:
    """Exit code, output and errors of a command.

    Args:
        command: Program and arguments.
        environment: All of its variables.
        limit: Seconds that it may take.

    Raises:
        ProgramAbsent: If there is none, or none that may be run.
        ProgramSilent: If it took longer; it has been ended.
    """
    try:
        process = subprocess.Popen(
            list(command), env=dict(environment), text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except (FileNotFoundError, PermissionError):
        raise ProgramAbsent(command[0]) from None
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise ProgramSilent(command[0]) from None
    finally:
        # A site's wrapper may have started others, which would keep the pipes open.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
    return process.returncode, output, errors


def time_limit(environment: Mapping[str, str], variable: str, default: float) -> float:
    """Seconds that a queue's command may take.

    Args:
        environment: Usually `os.environ`.
        variable: What says otherwise than the default.
        default: Seconds.

    Raises:
        UserError: If the variable holds no positive number.
    """
    text = environment.get(variable, "").strip()
    if not text:
        return default
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise UserError(f"a number of seconds in {variable}", repr(text), f"Write {default:g}.")
