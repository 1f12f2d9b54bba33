"""Why a job ended without a result, in one sentence."""

import contextlib
import pwd
import re
import signal

from scalestudy.launch.failures import TAIL_LINES, failure_of, failure_of_hang, first_cause, last_lines
from scalestudy.launch.queue.base import UNKNOWN, JobView
from scalestudy.study.records import Cause, Failure, Progress
from scalestudy.study.run_folder import RunFolder

INTERRUPTED = ("TIMEOUT", "NODE_FAIL", "PREEMPTED", "CANCELLED", "BOOT_FAIL", "DEADLINE", "STOPPED", "LOST")
"""Ends that are no fault of the run's own: it can go on from its checkpoint."""
ABLE_TO_GO_ON = 75
"""Exit code of a job script that stopped at a checkpoint and could not put itself back into the queue."""
NO_OUTPUT_FILE = 53
"""The "signal" by which Slurm says that a node could not open the job's output file."""
ALL = 1 << 30
"""Lines of a log: all of them."""
_START = re.compile(r"\d{4}-\d\d-\d\dT\S+Z job ")
_NO_CAUSE = re.compile(
    r"[-=]{5,}\s*$|\d{4}-\d\d-\d\dT\S+Z (job|ended|stopped) |scalestudy: rank \d+ of \d+ on |"
    r"asked to stop( \(SIGTERM\))?$"
)
"""Lines that the job and the workers write of their own accord, and those that mpirun draws."""
_BLAME = re.compile(
    r"^srun: error: (?P<host>[^\s:]+): tasks? (?P<rank>\d+)[^:]*: "
    r"(?:Exited with exit code (?P<code>\d+)|(?P<signal>Killed|Segmentation fault|Aborted))"
)
"""Srun's words on tasks that ended badly, first ones first; what it ended itself is "Terminated"."""
_SIGNALS = {"Killed": "SIGKILL", "Segmentation fault": "SIGSEGV", "Aborted": "SIGABRT"}


def cause(run: RunFolder, view: JobView) -> Failure:
    """The failure to write down for a run whose job is over.

    What its ranks have written of their ends counts where the queue knows no better, then srun's words on
    them, then the exit code of the job's script.

    Args:
        run: The run, for its logs, its exit code and how far it was.
        view: The queue's last word on the job.
    """
    silence = run.hang()
    if silence is not None and view.state != "CANCELLED":
        return failure_of_hang(run, silence, job_state="FAILED")
    code = run.exit_code()
    if code is None:
        code = view.exit_code or None
    state = "STOPPED" if code == ABLE_TO_GO_ON else view.state
    first = _first(run, state)
    if first is not None:
        return failure_of(run, first, hosts=True, job_state=state, last=_last(run, first.rank))
    rank, tail = last_words(run)
    words = sentence(view, state, code, rank, tail[-1] if tail else "")
    number = view.signal
    return Failure(
        rank=rank if state == "FAILED" else None,
        exit_code=code,
        signal=_signal(number) if number else None,
        reason=words + _progress(run.progress()) if state in INTERRUPTED else words,
        tail=tail,
        cancelled=state == "CANCELLED",
        job_state=state,
    )


def _first(run: RunFolder, state: str) -> Cause | None:
    """The rank that failed first, where that is why the job has ended."""
    if state in INTERRUPTED:
        return None
    first = first_cause(run.causes())
    if first is None or first.signal == "SIGTERM":  # by which a queue ends all of a job
        first = next((told for line in _job_lines(run) if (told := _blamed(line))), first)
    if first is None or first.signal == "SIGTERM":
        return None
    return first if state != "OUT_OF_MEMORY" or first.oom_kills else None


def _blamed(line: str) -> Cause | None:
    found = _BLAME.match(line)
    if found is None:
        return None
    rank, host, name = int(found["rank"]), found["host"], _SIGNALS.get(found["signal"] or "")
    if name is not None:
        return Cause(rank=rank, time=0, host=host, kind="signal", signal=name)
    return Cause(rank=rank, time=0, host=host, kind="exit", exit_code=int(found["code"]))


def _job_lines(run: RunFolder) -> list[str]:
    """What the job's log says of its last start; it may have been put back into the queue."""
    lines = last_lines(run, "job", ALL)
    starts = [number for number, line in enumerate(lines) if _START.match(line)]
    return lines[starts[-1] :] if starts else lines


def _last(run: RunFolder, rank: int) -> str:
    return next(iter(last_lines(run, f"rank-{rank}", 1)), "")


def sentence(view: JobView, state: str, code: int | None, rank: int | None, last: str) -> str:
    """One sentence on how a job ended.

    Args:
        view: The queue's last word.
        state: Its state, or "STOPPED" for a run that was asked to stop and could not be put back.
        code: Exit code of the job script, where there is one.
        rank: Rank to blame, where it is known.
        last: The last line of that rank's log.
    """
    where = f" on {view.nodes}" if view.nodes else ""
    if state == "CANCELLED":
        by = f"cancelled by {_user(view.by)}" if view.by else "cancelled"
        never = view.reason.startswith("Dependency")
        return "cancelled, since what it waited for has failed" if never else by
    if view.signal == NO_OUTPUT_FILE and state == "FAILED":
        return f"the job could not write into the study's folder{where}: does that node see it?"
    known = {
        "TIMEOUT": "the time limit was reached",
        "STOPPED": "the time limit came near, and the job could not be put back into the queue",
        "NODE_FAIL": f"a node failed ({view.nodes})" if view.nodes else "a node failed",
        "OUT_OF_MEMORY": f"out of memory{where}",
        "PREEMPTED": "preempted by a job of higher priority",
        "BOOT_FAIL": f"its nodes could not be started{where}",
        "DEADLINE": "its deadline passed",
    }
    if state in known:
        return known[state]
    said = f": {last}" if last else ""
    if code:
        who = "the job" if rank is None else f"rank {rank}"
        return f"{who} ended with {_code(code)}{where}{said}"
    if view.signal:
        name = _signal(view.signal) or f"signal {view.signal}"
        memory = " (often: out of memory)" if name == "SIGKILL" else ""
        return f"the job was ended by {name}{memory}{where}{said}"
    forgotten = ", and the queue has forgotten it" if view.state == UNKNOWN else ""
    return f"the job ended without a result{forgotten}{said}"


def last_words(run: RunFolder) -> tuple[int | None, list[str]]:
    """The rank to blame, if it was alone, and the last lines of its log, of the job's, or of rank 0's."""
    ranks = list((run.path / "logs").glob("rank-*.log"))
    lines = [line for line in _job_lines(run) if not _NO_CAUSE.match(line)]
    if not lines and (words := last_lines(run, "rank-0")):
        return 0 if len(ranks) == 1 else None, words
    return None, lines[-TAIL_LINES:] or _early_words(run)


def _early_words(run: RunFolder) -> list[str]:
    """The last lines of what the job printed before it had opened its log: JOB.out, in PBS NAME.oJOB."""
    record = run.job()
    number = re.match(r"\d+", record.job) if record else None
    if number is None or len(run.path.parents) < 3:
        return []
    jobs = run.path.parents[2] / "jobs"
    for file in (jobs / f"{number[0]}.out", *sorted(jobs.glob(f"*.o{number[0]}*"))):
        with contextlib.suppress(OSError):
            if lines := [line for line in file.read_text(errors="replace").splitlines() if line.strip()]:
                return lines[-TAIL_LINES:]
    return []


def _progress(progress: Progress | None) -> str:
    if progress is None or not progress.epoch:
        return ""
    return f" in epoch {progress.epoch} of {progress.epochs}"


def _code(code: int) -> str:
    """A shell adds 128 to the number of the signal that ended its command."""
    name = _signal(code - 128) if code > 128 else None
    return f"exit code {code}" + (f" ({name})" if name else "")


def _signal(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None


def _user(uid: str) -> str:
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except (KeyError, ValueError):
        return uid if not uid.isdigit() else f"user {uid}"
