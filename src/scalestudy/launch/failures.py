"""Why a run failed: which rank was the first, or how its job ended, in one sentence."""

import contextlib
import re
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

from scalestudy.launch.queue.base import UNKNOWN, JobView, output_of
from scalestudy.measure.hang_detection import in_words
from scalestudy.study.point import Point
from scalestudy.study.records import Cause, Failure, Hang, Progress
from scalestudy.study.run_folder import RunFolder
from scalestudy.util.errors import UserError

TAIL_LINES = 15


def log_files(run: RunFolder, rank: int | None = None, *, job: bool = False) -> list[tuple[str, Path]]:
    """The run's logs with what stands before their lines: "[0] ", or "[job] ".

    Of all ranks, or of one; with `job` the job's own, which also stands for ranks that have said nothing.
    """
    folder = run.path / "logs"
    jobs = [file for file in (folder / "job.log", _early_log(run)) if file and _is_filled(file)][:1]
    if job:
        return [("", file) for file in jobs]
    ranks = [int(file.stem[5:]) for file in folder.glob("rank-*.log") if file.stem[5:].isdigit()]
    logs = {number: folder / f"rank-{number}.log" for number in sorted(ranks)}
    if rank is None and jobs and not any(_is_filled(log) for log in logs.values()):
        return [("[job] ", file) for file in jobs]
    return [(f"[{number}] ", log) for number, log in logs.items() if rank is None or number == rank]


def _is_filled(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


def last_lines(run: RunFolder, name: str, count: int = TAIL_LINES) -> list[str]:
    """The last lines of a log that are not empty, "rank-0" or "job"; none where it cannot be read."""
    return _filled_lines(run.path / "logs" / f"{name}.log", count)


def _filled_lines(file: Path | None, count: int) -> list[str]:
    try:
        text = file.read_text(errors="replace") if file else ""
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]


WAKE = 0.5
"""Seconds by which clocks of nodes, or two processes that see one end, may put it after its echo."""
ECHOES = ("SIGTERM", "SIGHUP", "SIGABRT")
"""Signals by which launchers and frameworks end a rank after another one has failed."""
OF_OTHERS = (
    "UnavailableError", "CancelledError", "AbortedError", "DeadlineExceededError", "HorovodInternalError",
    "Horovod has been shut down", "Connection closed by peer", "Connection reset by peer",
    "remote process exited",
)  # fmt: skip
"""Words of TensorFlow, Horovod, Gloo and NCCL that say that another rank is gone, or does not answer."""


_GLOO_TIMEOUT = re.compile(r"Wait timeout after (\d+) seconds")
"""What Horovod says before it aborts since another rank has not joined in time (gloo/http_store.cc)."""


def first_cause(causes: Iterable[Cause]) -> Cause | None:
    """The end that brought about the others: the earliest, and of several at once one that is no echo.

    An echo is what ranks suffer when another is gone: an exception out of the framework, and not out of the
    user's own files, or being ended by a launcher or a framework. The surest of all is an exception that says
    so; an abort beside it may be what it speaks of. The local launcher ends the others by SIGHUP: under load
    that may be seen before the end it followed.
    """
    causes = sorted(causes, key=lambda cause: cause.time)
    causes = [cause for cause in causes if cause.signal != "SIGHUP"] or causes
    near = [cause for cause in causes if cause.time - causes[0].time <= WAKE]
    return min(near, key=_echo, default=None)


def _point(run: RunFolder) -> Point | None:
    """None where it cannot be read: how its run ended is told all the same."""
    with contextlib.suppress(UserError):
        return run.point()
    return None


def lost_workers(run: RunFolder) -> list[Cause]:
    """The ends of workers that were survived: by a signal, where workers take no steps together.

    Not that of the last one, nor those that came after another end.
    """
    point, lost = _point(run), list[Cause]()
    if point is None or point.traits.synchronous:
        return lost
    for cause in sorted(run.causes(), key=lambda cause: cause.time):
        is_worker = point.roles[cause.rank] == "worker"
        if cause.kind != "signal" or not is_worker or len(lost) + 1 == point.workers:
            break
        lost.append(cause)
    return lost


def deciding(run: RunFolder, causes: Sequence[Cause]) -> list[Cause]:
    """The ends that a run may have ended by: not those of workers that were survived, if there are others."""
    lost = {cause.rank for cause in lost_workers(run)} if causes else set()
    return [cause for cause in causes if cause.rank not in lost] or list(causes)


def failure_of(
    run: RunFolder, cause: Cause, *, hosts: bool = False, job_state: str | None = None, last: str = ""
) -> Failure:
    """The failure to write down for a run that ended by this; for the other arguments see `sentence`."""
    tail = last_lines(run, f"rank-{cause.rank}")
    reason = sentence(cause, hosts=hosts, last=last, point=_point(run))
    if cause.signal == "SIGABRT" and (late := _GLOO_TIMEOUT.search("\n".join(tail))):
        reason += (
            f": another rank had not joined within {late[1]} s (Gloo); if starting takes that long in good "
            "health, raise progress_timeout under [launch]"
        )
    return Failure(
        rank=cause.rank, exit_code=cause.exit_code, signal=cause.signal, reason=reason, tail=tail,
        job_state=job_state,
    )  # fmt: skip


def sentence(cause: Cause, *, hosts: bool = False, last: str = "", point: Point | None = None) -> str:
    """One sentence on how a rank ended, without a full stop.

    With `hosts` it names the rank's host, with `point` its role if it was no worker; `last` is quoted of its
    log where nothing else is known.
    """
    who = f"rank {cause.rank}{_role(point, cause.rank)}"
    on = f" on {cause.host}" if hosts and cause.host else ""
    at = f" ({cause.frame})" if cause.frame else ""
    if cause.kind == "stopped":
        return f"{who} was stopped by {cause.signal}{on}, and the others had to wait for it"
    if cause.kind == "signal":
        return f"{who} was ended by {cause.signal}{on}{at}{_memory(cause)}"
    ended = f"{who} ended with exit code {cause.exit_code}{on}"
    if cause.kind == "sys.exit":
        program = "the task's file ended the program" if cause.frame else "something ended the program"
        return f"{ended}: {program} by {cause.words}{at}"
    if cause.kind == "os._exit":
        return f"{ended} before its work was done, without an exception, as after os._exit"
    words = cause.words or last
    return f"{ended}{f': {words}' if words else ''}{at}"


def _role(point: Point | None, rank: int | None) -> str:
    """What follows the rank of a process that is no worker, as " (parameter server)"; else nothing."""
    role = point.roles[rank] if point and rank is not None and rank < len(point.roles) else "worker"
    return f" ({role.replace('-', ' ')})" if role != "worker" else ""


def _memory(cause: Cause) -> str:
    if cause.signal != "SIGKILL":
        return ""
    if cause.oom_kills is None:
        return " (often: out of memory)"
    if cause.oom_kills == 0:
        return ", but not by the kernel for lack of memory: a person or a program sent it"
    several = "es" if cause.oom_kills > 1 else ""
    return f": out of memory (the kernel killed {cause.oom_kills} process{several} of its cgroup for it)"


def _echo(cause: Cause) -> int:
    """0 for an end of a rank's own, 1 for what may be an echo, 2 for one that speaks of another rank."""
    if cause.kind == "signal":
        return int(cause.signal in ECHOES)
    if cause.kind not in ("exception", "exit"):
        return 0
    if any(words in cause.words for words in OF_OTHERS):  # in a script, out of a line of its own
        return 2
    return 0 if cause.frame else 1


def failure_of_hang(run: RunFolder, hang: Hang, job_state: str | None = None) -> Failure:
    """The failure of a run that was ended since nothing moved, with the last lines of the rank's log.

    If others still waited for a rank that had been killed, it ended by that.
    """
    for cause in run.causes() if not hang.lives else ():
        if cause.rank == hang.rank and cause.kind == "signal" and cause.signal not in ECHOES:
            return failure_of(run, cause, hosts=job_state is not None, job_state=job_state)
    tail = last_lines(run, f"rank-{hang.rank or 0}")
    reason = in_words(hang, _role(_point(run), hang.rank))
    return Failure(rank=hang.rank, exit_code=None, reason=reason, tail=tail, job_state=job_state)


INTERRUPTED = ("TIMEOUT", "NODE_FAIL", "PREEMPTED", "CANCELLED", "BOOT_FAIL", "DEADLINE", "STOPPED", "LOST")
"""Ends of jobs that are no fault of the run's own: it can go on from its checkpoint."""
ABLE_TO_GO_ON = 75
"""Exit code of a job script that stopped at a checkpoint and could not put itself back into the queue."""
_START = re.compile(r"\d{4}-\d\d-\d\dT\S+Z job ")
_NO_CAUSE = re.compile(
    r"[-=]{5,}\s*$|\d{4}-\d\d-\d\dT\S+Z (job|ended|stopped) |scalestudy: rank \d+ of \d+ on |"
    r"asked to stop( \(SIGTERM\))?$"
)
"""Lines that the job and the workers write of their own accord, and those that mpirun draws."""
_ENDS = {
    "TIMEOUT": "the time limit was reached",
    "STOPPED": "the time limit was near, and the job could not be put back into the queue",
    "NODE_FAIL": "a node failed",
    "OUT_OF_MEMORY": "out of memory",
    "PREEMPTED": "preempted by a job of higher priority",
}


def failure_of_job(run: RunFolder, view: JobView) -> Failure:
    """The failure to write down for a run whose job is over, by the queue's last word.

    What its ranks have written of their ends counts where the queue knows no better, then the exit code of
    the job's script.
    """
    hang = run.hang()
    if hang is not None and view.state != "CANCELLED":
        return failure_of_hang(run, hang, job_state="FAILED")
    code = run.exit_code()
    if code is None:
        code = view.exit_code or None
    state = "STOPPED" if code == ABLE_TO_GO_ON else view.state
    first = first_cause(deciding(run, run.causes())) if state not in INTERRUPTED else None
    if first and first.signal != "SIGTERM" and (state != "OUT_OF_MEMORY" or first.oom_kills):
        last = next(iter(last_lines(run, f"rank-{first.rank}", 1)), "")
        return failure_of(run, first, hosts=True, job_state=state, last=last)
    rank, tail = _last_words(run)
    reason = job_sentence(view, state, code, rank, tail[-1] if tail else "")
    return Failure(
        rank=rank if state == "FAILED" else None, exit_code=code,
        signal=_signal_name(view.signal) if view.signal else None,
        reason=reason + _how_far(run.progress()) if state in INTERRUPTED else reason, tail=tail,
        cancelled=state == "CANCELLED", job_state=state,
    )  # fmt: skip


def job_sentence(view: JobView, state: str, code: int | None, rank: int | None, last: str) -> str:
    """One sentence on how a job ended: by the queue, else by its exit code and the last line of a log."""
    where = f" on {view.nodes}" if view.nodes else ""
    if state == "CANCELLED":
        by = f" by user {view.by}" if view.by else ""
        never = view.reason.startswith("Dependency")
        return f"cancelled{', since what it waited for has failed' if never else by}"
    if state in _ENDS:
        named = f" ({view.nodes})" if view.nodes and state == "NODE_FAIL" else where
        return _ENDS[state] + (named if state in ("NODE_FAIL", "OUT_OF_MEMORY") else "")
    quoted = f": {last}" if last else ""
    if code:
        who = "the job" if rank is None else f"rank {rank}"
        name = _signal_name(code - 128) if code > 128 else None  # to which a shell adds 128
        return f"{who} ended with exit code {code}{f' ({name})' if name else ''}{where}{quoted}"
    if view.signal:
        name = _signal_name(view.signal) or f"signal {view.signal}"
        memory = " (often: out of memory)" if name == "SIGKILL" else ""
        return f"the job was ended by {name}{memory}{where}{quoted}"
    gone = "it has left the queue: deleted by force, or its node failed"
    known = gone if view.state == UNKNOWN else f"the queue says {view.state}"
    return f"the job ended without a result, and {known}{quoted}"


def _last_words(run: RunFolder) -> tuple[int | None, list[str]]:
    """The rank to blame, if it was alone, and the last lines of its log, of the job's, or of rank 0's."""
    lines = last_lines(run, "job", 1 << 30)
    starts = [number for number, line in enumerate(lines) if _START.match(line)]
    # Of its last start: it may have been put back into the queue.
    lines = [line for line in lines[starts[-1] if starts else 0 :] if not _NO_CAUSE.match(line)]
    if not lines and (words := last_lines(run, "rank-0")):
        alone = len(list((run.path / "logs").glob("rank-*.log"))) == 1
        return 0 if alone else None, words
    return None, lines[-TAIL_LINES:] or _filled_lines(_early_log(run), TAIL_LINES)


def _early_log(run: RunFolder) -> Path | None:
    """What the job printed before it had opened its log."""
    record = run.job()
    return output_of(Path(record.script)) if record else None


def _how_far(progress: Progress | None) -> str:
    return f" in epoch {progress.epoch} of {progress.epochs}" if progress and progress.epoch else ""


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
