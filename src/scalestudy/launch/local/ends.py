"""How a run of this machine ended, from what its workers have written and its launcher has seen."""

import os
import signal
import socket

from scalestudy.launch.causes import failure_of, first_cause
from scalestudy.launch.logs import last_lines
from scalestudy.launch.silence import failure_of_hang
from scalestudy.machine.memory import oom_kills
from scalestudy.study.records import Cause, Failure
from scalestudy.study.run_folder import RunFolder


def failure_of_end(
    run: RunFolder, failed: tuple[int, int] | None, when: float, kills: int | None
) -> Failure | None:
    """Why a run has no result; None if it has one. All its workers have ended.

    Args:
        run: The run.
        failed: Rank and exit code (negative: a signal) of the worker that was seen to fail first, if any.
        when: Unix time at which that was.
        kills: `oom_kills` before the workers were started.
    """
    if gone(run):
        return Failure(rank=None, exit_code=None, reason=f"its folder was removed while it ran: {run.path}")
    silence = run.hang()
    if silence is not None and run.result() is None:
        return failure_of_hang(silence, last_lines(run, f"rank-{silence.rank or 0}"))
    if failed is not None:
        causes = run.causes()
        if failed[0] not in {cause.rank for cause in causes}:
            causes.append(_seen(*failed, when, kills))
        cause = first_cause(causes)
        assert cause
        return failure_of(run, cause, last=next(iter(last_lines(run, f"rank-{cause.rank}", 1)), ""))
    if run.result() is not None:
        return None
    if run.stop.exists() and run.checkpoint.exists():
        return Failure(rank=None, exit_code=None, reason="stopped on request; run it again to go on")
    reason = "all workers ended, but there is no result"
    return Failure(rank=0, exit_code=0, reason=reason, tail=last_lines(run, "rank-0"))


def unable(error: Exception) -> Failure:
    """The failure of a run that could not be started, or whose files could not be written or read."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return Failure(rank=None, exit_code=None, reason=f"it could not be run: {error.strerror}{where}")
    return Failure(rank=None, exit_code=None, reason=f"it could not be run: {error}")


def write_down(run: RunFolder | None, failure: Failure | None) -> str:
    """Write why a run failed into its folder; what kept that from being written, or ""."""
    if failure is None:
        return ""
    if run is None:
        return "it has no folder to say so"
    try:
        run.write_failure(failure)
    except OSError as error:
        return f"its folder cannot say so ({error.strerror or error})"
    return ""


def gone(run: RunFolder) -> bool:
    """Whether a run's folder was removed; one that cannot be looked at just now was not."""
    try:
        os.stat(run.path / "point.json")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _seen(rank: int, code: int, when: float, kills: int | None) -> Cause:
    """How a worker ended that has left no word of it: not even the process above it was left."""
    if code >= 0:
        return Cause(rank=rank, time=when, host=socket.gethostname(), kind="exit", exit_code=code)
    after = oom_kills()
    return Cause(
        rank=rank, time=when, host=socket.gethostname(), kind="signal", signal=signal.Signals(-code).name,
        oom_kills=None if kills is None or after is None else max(0, after - kills),
    )  # fmt: skip
