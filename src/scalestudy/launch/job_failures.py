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
    state = view.state
    if code == STOPPED_EXIT_CODE:
        # For the queue, such a job has merely failed.
        state = "STOPPED"
    first = None
    if state not in INTERRUPTED:
        first = first_cause(run.causes())
    # By SIGTERM, launchers and the queue end ranks that have done nothing wrong. An end that the queue calls
    # out of memory is explained by a rank only if the kernel has counted a kill there.
    if (
        first
        and first.signal != "SIGTERM"
        and (state != "OUT_OF_MEMORY" or first.oom_kills)
    ):
        return failure_of(run, first, hosts=True, job_state=state)
    rank, lines = last_words(run)
    if view.unseen and not lines:
        return Failure(
            rank=None,
            exit_code=None,
            reason=_unseen(run, view),
            job_state=state,
        )
    reason = job_sentence(view, state, code, rank, telling_line(lines))
    if state in INTERRUPTED:
        reason += _how_far(run.progress())
    if state != "FAILED":
        # The queue has ended all ranks: none is to blame.
        rank = None
    name = None
    if view.signal:
        name = _signal_name(view.signal)
    return Failure(
        rank=rank,
        exit_code=code,
        signal=name,
        reason=reason,
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
    view: JobView,
    state: str,
    code: int | None,
    rank: int | None,
    last: str,
) -> str:
    """Describe in one sentence how a job ended, by its state, else its exit code and the last log line."""
    where = f" on {view.nodes}" if view.nodes else ""
    if state == "CANCELLED":
        return "cancelled"
    if state in _ENDS:
        end = _ENDS[state]
        if state == "OUT_OF_MEMORY":
            end += where
        elif state == "NODE_FAIL" and view.nodes:
            # The queue names all nodes of the job, not the one that failed.
            end += f" ({view.nodes})"
        return end
    quoted = f": {last}" if last else ""
    if code:
        return f"{_exit_words(code, rank)}{where}{quoted}"
    if view.signal:
        name = _signal_name(view.signal) or f"signal {view.signal}"
        if name == "SIGKILL":
            # The kernel's out-of-memory killer, and a cgroup's, send no other signal.
            name += " (often: out of memory)"
        return f"the job was ended by {name}{where}{quoted}"
    known = f"the queue says {view.state}"
    if view.state == UNKNOWN:
        known = "it has left the queue: deleted by force, or its node failed"
    return f"the job ended without a result, and {known}{quoted}"


def _exit_words(code: int, rank: int | None) -> str:
    """Describe an exit code that is not 0, of a rank or of the whole job."""
    who = "the job"
    if rank is not None:
        who = f"rank {rank}"
    words = f"{who} ended with exit code {code}"
    name = None
    if code > 128:
        # A shell adds 128 to the signal that ended its command.
        name = _signal_name(code - 128)
    if name is not None:
        words += f" ({name})"
    return words


def _how_far(progress: Progress | None) -> str:
    if progress is None or not progress.epoch:
        return ""
    return f" in epoch {progress.epoch} of {progress.epochs}"


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
