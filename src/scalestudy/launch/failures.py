"""Why a run failed, in one sentence: which rank failed first, or how its job ended."""

import re
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

from scalestudy.launch.queue.point_job import output_of
from scalestudy.launch.queue.scheduler import UNKNOWN, JobView
from scalestudy.measure.hang_detection import describe_hang
from scalestudy.store.records import Cause, Failure, Hang, Progress
from scalestudy.store.run_folder import RunFolder

TAIL_LINES = 15
"""Last lines of a log that a failure keeps."""
SEARCHED_LINES = 60
"""Last lines of a log among which the one that tells the cause is searched: noise of launchers may follow."""


def log_files(
    run: RunFolder, rank: int | None = None, *, job: bool = False
) -> list[tuple[str, Path]]:
    """Return the logs of a run, each with the prefix of its lines: "[0] " or "[job] ".

    The logs are those of all ranks or of one. The job's own log is returned with `job`, without a prefix, and
    if the logs of all ranks are empty.
    """
    folder = run.path / "logs"
    jobs = [
        file
        for file in (folder / "job.log", _early_log(run))
        if file and _is_filled(file)
    ][:1]
    if job:
        return [("", file) for file in jobs]
    ranks = [
        int(file.stem[5:])
        for file in folder.glob("rank-*.log")
        if file.stem[5:].isdigit()
    ]
    logs = {number: folder / f"rank-{number}.log" for number in sorted(ranks)}
    if rank is None and jobs and not any(_is_filled(log) for log in logs.values()):
        return [("[job] ", file) for file in jobs]
    return [
        (f"[{number}] ", log)
        for number, log in logs.items()
        if rank is None or number == rank
    ]


def _is_filled(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


def last_lines(run: RunFolder, name: str, count: int = TAIL_LINES) -> list[str]:
    """Return the last non-empty lines of a log ("rank-0" or "job"); none if it cannot be read."""
    return _filled_lines(run.path / "logs" / f"{name}.log", count)


def _filled_lines(file: Path | None, count: int) -> list[str]:
    try:
        text = file.read_text(errors="replace") if file else ""
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]


WAKE = 0.5
"""Seconds by which a first failure may be recorded after its consequences: by another process."""
CLOCKS_APART = 5.0
"""The same on another host, whose clock may differ: which rank failed first is then seen by how it ended."""
ECHOES = ("SIGTERM", "SIGHUP", "SIGABRT")
"""Signals by which launchers and frameworks end a rank after another has failed."""
OF_OTHERS = (
    "UnavailableError",
    "CancelledError",
    "AbortedError",
    "DeadlineExceededError",
    "HorovodInternalError",
    "Horovod has been shut down",
    "Connection closed by peer",
    "Connection reset by peer",
    "remote process exited",
    "at the same point within",
)
"""Messages of TensorFlow, Horovod, Gloo, NCCL and of measured scripts about another rank that ended or does
not answer."""


def first_cause(causes: Iterable[Cause]) -> Cause | None:
    """Return the cause that led to the others: the earliest; of simultaneous ones, one that is no echo.

    An echo is how a rank ends after another has failed: by an exception from the framework, rather than from
    the user's files, or by a signal from a launcher or a framework. An exception that names a lost peer is
    the surest echo; an abort at the same time may be the failure that it reports. The local launcher ends the
    other ranks with SIGHUP, which under load may be recorded before the first failure.
    """
    causes = sorted(causes, key=lambda cause: cause.time)
    causes = [cause for cause in causes if cause.signal != "SIGHUP"] or causes
    near = [
        cause
        for cause in causes
        if cause.time - causes[0].time <= _may_precede(cause, causes[0])
    ]
    return min(near, key=_echo, default=None)


def _may_precede(cause: Cause, earliest: Cause) -> float:
    return WAKE if cause.host == earliest.host else CLOCKS_APART


def failure_of(
    run: RunFolder, cause: Cause, *, hosts: bool = False, job_state: str | None = None
) -> Failure:
    """Return the failure to record for a run that ended by `cause`. For other arguments, see `sentence`."""
    lines = last_lines(run, f"rank-{cause.rank}", SEARCHED_LINES)
    return Failure(
        rank=cause.rank,
        exit_code=cause.exit_code,
        signal=cause.signal,
        reason=sentence(cause, hosts=hosts, last=telling_line(lines)),
        tail=lines[-TAIL_LINES:],
        job_state=job_state,
    )


def sentence(cause: Cause, *, hosts: bool = False, last: str = "") -> str:
    """Describe in one sentence, without a full stop, how a rank ended.

    With `hosts`, it names the rank's host. `last`, a line of its log, is quoted if the cause has no message.
    """
    who = f"rank {cause.rank}"
    on = f" on {cause.host}" if hosts and cause.host else ""
    at = f" ({cause.frame})" if cause.frame else ""
    if cause.kind == "stopped":
        return f"{who} was stopped by {cause.signal}{on}, and the others had to wait for it"
    if cause.kind == "signal":
        return f"{who} was ended by {cause.signal}{on}{at}{_memory(cause)}"
    ended = f"{who} ended with exit code {cause.exit_code}{on}"
    if cause.kind == "sys.exit":
        program = (
            "the task's file ended the program"
            if cause.frame
            else "something ended the program"
        )
        return f"{ended}: {program} by {cause.words}{at}"
    if cause.kind == "os._exit":
        return (
            f"{ended} before its work was done, without an exception, as after os._exit"
        )
    words = cause.words or last
    return f"{ended}{f': {words}' if words else ''}{at}"


def _memory(cause: Cause) -> str:
    if cause.signal != "SIGKILL":
        return ""
    if cause.oom_kills is None:
        return " (often: out of memory)"
    if cause.oom_kills == 0:
        return (
            ", but not by the kernel for lack of memory: a person or a program sent it"
        )
    several = "es" if cause.oom_kills > 1 else ""
    return f": out of memory (the kernel killed {cause.oom_kills} process{several} of its cgroup for it)"


def names_another(message: str) -> bool:
    """Whether a message is about another rank that has ended or does not answer."""
    return any(words in message for words in OF_OTHERS)


def _echo(cause: Cause) -> int:
    """Return 0 for a rank's own failure, 1 for a possible echo, 2 for an end that names another rank."""
    if cause.kind == "signal":
        return int(cause.signal in ECHOES)
    if cause.kind not in ("exception", "exit"):
        return 0
    if names_another(cause.words):  # in a script, raised from the user's own line
        return 2
    return 0 if cause.frame else 1


def failure_of_hang(
    run: RunFolder, hang: Hang, job_state: str | None = None
) -> Failure:
    """Return the failure of a run that was ended because it hung, with the last lines of the rank's log.

    If the rank that the others waited for had been killed by a signal, that signal is the failure.
    """
    for cause in run.causes() if not hang.lives else ():
        if (
            cause.rank == hang.rank
            and cause.kind == "signal"
            and cause.signal not in ECHOES
        ):
            return failure_of(
                run, cause, hosts=job_state is not None, job_state=job_state
            )
    tail = last_lines(run, f"rank-{hang.rank or 0}")
    reason = describe_hang(hang)
    return Failure(
        rank=hang.rank, exit_code=None, reason=reason, tail=tail, job_state=job_state
    )


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
_START = re.compile(r"\d{4}-\d\d-\d\dT\S+Z job ")
_NO_CAUSE = re.compile(
    r"[-=]{5,}\s*$|\d{4}-\d\d-\d\dT\S+Z (job|ended|stopped) |scalestudy: rank \d+ of \d+ on |"
    r"asked to stop( \(SIGTERM\))?$"
)
"""Lines of a log that do not explain a failure: those of the job, the workers and mpirun's separators."""
_NOISE = re.compile(
    r"srun: |slurmstepd: |(prted?|mpirun|mpiexec)\b|Primary job +terminated|[IWEF]\d{4} \d\d:|"
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] |WARNING: All log messages before absl|oneDNN|"
    r"To enable the following instructions|.*\boneDNN custom operations are on"
)
"""Lines with which launchers and TensorFlow surround the one that tells what happened."""
_RANK = re.compile(r"^\[rank\d+\]: ?")
"""What PyTorch writes before each line of a rank's traceback."""
_OWN_CAUSE = re.compile(r"scalestudy: Expected ")
_ENDS = {
    "TIMEOUT": "the time limit was reached",
    "STOPPED": "the time limit was near, and the job was not put back into the queue",
    "NODE_FAIL": "a node failed",
    "OUT_OF_MEMORY": "out of memory",
    "PREEMPTED": "preempted by a job of higher priority",
}


def is_noise(line: str) -> bool:
    """Whether a line of a log is what a launcher or TensorFlow prints about itself."""
    return _NOISE.match(line) is not None


def telling_line(lines: Sequence[str]) -> str:
    """Return the line that tells why a process failed, from the last lines of its log; "" if there are none.

    It is the last message of Scalestudy or the last line of the last traceback, whichever comes later; else
    the last line that is not the noise of a launcher or of TensorFlow; else the last line.
    """
    telling = ""
    in_traceback = False
    for line in (_RANK.sub("", line) for line in lines):
        if line.startswith("Traceback (most recent call last):"):
            in_traceback = True
        elif in_traceback and not line.startswith((" ", "\t")):
            in_traceback, telling = False, line
        elif _OWN_CAUSE.match(line):
            telling = line
    plain = [
        line for line in lines if not (_NOISE.match(line) or _NO_CAUSE.match(line))
    ]
    return telling or (plain or list(lines) or [""])[-1]


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
    rank, lines = _last_words(run)
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


def _last_words(run: RunFolder) -> tuple[int | None, list[str]]:
    """Return the rank to blame (0, if it is alone) and the last lines of the job's log, else of rank 0's.

    A job's log that holds only the noise of a launcher is left for rank 0's.
    """
    lines = last_lines(run, "job", 1 << 30)
    starts = [number for number, line in enumerate(lines) if _START.match(line)]
    # Only lines since the last start: the job may have been requeued.
    lines = [
        line
        for line in lines[starts[-1] if starts else 0 :]
        if not _NO_CAUSE.match(line)
    ]
    only_noise = all(_NOISE.match(line) for line in lines)
    if only_noise and (words := last_lines(run, "rank-0", SEARCHED_LINES)):
        alone = len(list((run.path / "logs").glob("rank-*.log"))) == 1
        return 0 if alone else None, words
    return None, lines[-SEARCHED_LINES:] or _filled_lines(
        _early_log(run), SEARCHED_LINES
    )


def _early_log(run: RunFolder) -> Path | None:
    record = run.job()
    script = Path(record.script) if record else Path()
    return output_of(script) if script.name else None


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
