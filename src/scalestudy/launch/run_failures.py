"""How a run that this process started has failed, and its record in the run folder."""

import os

from scalestudy.launch.failures import failure_of, failure_of_hang, first_cause
from scalestudy.launch.logs import last_lines
from scalestudy.launch.supervise import cause_of_code
from scalestudy.store.records import Failure
from scalestudy.store.run_folder import RunFolder


def failure_of_end(
    run: RunFolder,
    failed: tuple[int, int] | None,
    when: float,
    kills: int | None,
) -> Failure | None:
    """Return why a run failed, after all its workers have ended; None if it did not.

    `failed` is the rank and the exit code (negative: a signal) of the worker that failed first as observed
    here, `when` the Unix time of that, and `kills` is `oom_kills` before the workers were started.
    """
    if was_removed(run):
        return Failure(
            rank=None,
            exit_code=None,
            reason=f"its folder was removed while it ran: {run.path}",
        )
    # Before the ranks: those of a hanging run were killed, and their ends say nothing.
    hang = run.hang()
    if hang is not None and run.result() is None:
        return failure_of_hang(run, hang)
    if failed is not None:
        causes = run.causes()
        if failed[0] not in {cause.rank for cause in causes}:
            # It has recorded none if its supervisor was killed as well.
            seen = cause_of_code(*failed, kills, unsaid="exit")
            causes.append(seen.model_copy(update={"time": when}))
        cause = first_cause(causes)
        assert cause
        return failure_of(run, cause)
    if run.result() is not None:
        return None
    if run.stop.exists() and run.stopped():
        why = run.stop.read_text()
        request = "stopped on request"
        if why:
            request += f" ({why})"
        reason = f"{request}; run it again to continue"
        return Failure(
            rank=None,
            exit_code=None,
            reason=reason,
        )
    reason = "all workers ended, but there is no result"
    return Failure(
        rank=0,
        exit_code=0,
        reason=reason,
        tail=last_lines(run, "rank-0"),
    )


def failure_to_start(error: Exception) -> Failure:
    """Return the failure of a run that could not be started, or whose files are inaccessible."""
    if isinstance(error, OSError) and error.strerror:
        reason = f"it could not be run: {error.strerror}"
        if error.filename:
            reason += f": {error.filename}"
        return Failure(
            rank=None,
            exit_code=None,
            reason=reason,
        )
    return Failure(
        rank=None,
        exit_code=None,
        reason=f"it could not be run: {error}",
    )


def record_failure(run: RunFolder | None, failure: Failure) -> str:
    """Write a failure into the run's folder; return why that was impossible, or ""."""
    if run is None:
        return "it has no folder to say so"
    try:
        run.write_failure(failure)
    except OSError as error:
        return f"its folder cannot say so ({error.strerror or error})"
    return ""


def was_removed(run: RunFolder) -> bool:
    """Whether a run's folder was removed; False if it is only inaccessible at the moment."""
    try:
        os.stat(run.path / "point.json")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
