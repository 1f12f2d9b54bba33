"""How a job has ended without a result, by what its queue, its ranks and its log say."""

import signal

from scalestudy.launch.failures import failure_of, failure_of_hang, first_cause
from scalestudy.launch.job_view import UNKNOWN, JobView
from scalestudy.launch.logs import TAIL_LINES, last_words, telling_line
from scalestudy.store.records import Failure, Progress
from scalestudy.store.run_folder import RunFolder

INTERRUPTED = (
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "CANCELLED",
    "BOOT_FAIL",
    "DEADLINE",
    "STOPPED",
    "LOST",
)
"""Ends of jobs that the run did not cause: it can continue from its checkpoint."""
STOPPED_EXIT_CODE = 75
"""Exit code of a job script that stopped at a checkpoint and could not requeue itself."""
_ENDS = {
    "TIMEOUT": "the time limit was reached",
    "STOPPED": "the time limit was near, and the job was not put back into the queue",
    "NODE_FAIL": "a node failed",
    "OUT_OF_MEMORY": "out of memory",
    "PREEMPTED": "preempted by a job of higher priority",
}


def failure_of_job(run: RunFolder, view: JobView) -> Failure:
    """Return the failure to record for a run whose job is over, from the queue's last answer.

    If the queue gives no specific reason, the causes recorded by the ranks decide, then the exit code of the
    job script.
    """
    hang = run.hang()
    if hang is not None and view.state != "CANCELLED":
        return failure_of_hang(run, hang, job_state="FAILED")
    code = run.exit_code()
    if code is None:
        code = view.exit_code or None
    state = "STOPPED" if code == STOPPED_EXIT_CODE else view.state
    first = first_cause(run.causes()) if state not in INTERRUPTED else None
    if (
        first
        and first.signal != "SIGTERM"
        and (state != "OUT_OF_MEMORY" or first.oom_kills)
    ):
        return failure_of(run, first, hosts=True, job_state=state)
    rank, lines = last_words(run)
    if view.unseen and not lines:
        return Failure(
            rank=None, exit_code=None, reason=_unseen(run, view), job_state=state
        )
    reason = job_sentence(view, state, code, rank, telling_line(lines))
    return Failure(
        rank=rank if state == "FAILED" else None,
        exit_code=code,
        signal=_signal_name(view.signal) if view.signal else None,
        reason=reason + _how_far(run.progress()) if state in INTERRUPTED else reason,
        tail=lines[-TAIL_LINES:],
        cancelled=state == "CANCELLED",
        job_state=state,
    )


def _unseen(run: RunFolder, view: JobView) -> str:
    folder = run.path.parents[2]
    return (
        f"{view.nodes or 'its node'} does not see {folder}, or cannot write there: "
        "results belong on a file system that all nodes share"
    )


def job_sentence(
    view: JobView, state: str, code: int | None, rank: int | None, last: str
) -> str:
    """Describe in one sentence how a job ended, by its state, else its exit code and the last log line."""
    where = f" on {view.nodes}" if view.nodes else ""
    if state == "CANCELLED":
        return "cancelled"
    if state in _ENDS:
        named = f" ({view.nodes})" if view.nodes and state == "NODE_FAIL" else where
        return _ENDS[state] + (named if state in ("NODE_FAIL", "OUT_OF_MEMORY") else "")
    quoted = f": {last}" if last else ""
    if code:
        who = "the job" if rank is None else f"rank {rank}"
        name = (
            _signal_name(code - 128) if code > 128 else None
        )  # a shell adds 128 to a signal
        return f"{who} ended with exit code {code}{f' ({name})' if name else ''}{where}{quoted}"
    if view.signal:
        name = _signal_name(view.signal) or f"signal {view.signal}"
        memory = " (often: out of memory)" if name == "SIGKILL" else ""
        return f"the job was ended by {name}{memory}{where}{quoted}"
    gone = "it has left the queue: deleted by force, or its node failed"
    known = gone if view.state == UNKNOWN else f"the queue says {view.state}"
    return f"the job ended without a result, and {known}{quoted}"


def _how_far(progress: Progress | None) -> str:
    return (
        f" in epoch {progress.epoch} of {progress.epochs}"
        if progress and progress.epoch
        else ""
    )


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
