"""Why a run failed, in one sentence: which rank failed first."""

from collections.abc import Iterable

from scalestudy.launch.logs import SEARCHED_LINES, TAIL_LINES, last_lines, telling_line
from scalestudy.measure.silence import describe_hang
from scalestudy.store.records import Cause, Failure, Hang
from scalestudy.store.run_folder import RunFolder

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
    near = []
    for cause in causes:
        if cause.time - causes[0].time <= _may_precede(cause, causes[0]):
            near.append(cause)
    # Of equal ones, min takes the first, which is the earliest.
    return min(near, key=_echo, default=None)


def _may_precede(cause: Cause, earliest: Cause) -> float:
    if cause.host == earliest.host:
        return WAKE
    return CLOCKS_APART


def failure_of(
    run: RunFolder,
    cause: Cause,
    *,
    hosts: bool = False,
    job_state: str | None = None,
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
        program = "something ended the program"
        if cause.frame:
            program = "the task's file ended the program"
        return f"{ended}: {program} by {cause.words}{at}"
    if cause.kind == "os._exit":
        # Seen only by the parent process: Python runs no handler of the worker's.
        return (
            f"{ended} before its work was done, without an exception, as after os._exit"
        )
    words = cause.words or last
    if words:
        ended += f": {words}"
    return f"{ended}{at}"


def _memory(cause: Cause) -> str:
    if cause.signal != "SIGKILL":
        return ""
    if cause.oom_kills is None:
        # Without a cgroup that counts kills, nobody can tell the kernel's SIGKILL from another one.
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
    if cause.frame:
        return 0
    return 1


def failure_of_hang(
    run: RunFolder,
    hang: Hang,
    job_state: str | None = None,
) -> Failure:
    """Return the failure of a run that was ended because it hung, with the last lines of the rank's log.

    If the rank that the others waited for had been killed by a signal, that signal is the failure.
    """
    causes: list[Cause] = []
    if not hang.lives:
        causes = run.causes()
    for cause in causes:
        own_signal = cause.kind == "signal" and cause.signal not in ECHOES
        if cause.rank == hang.rank and own_signal:
            return failure_of(
                run,
                cause,
                hosts=job_state is not None,
                job_state=job_state,
            )
    tail = last_lines(run, f"rank-{hang.rank or 0}")
    reason = describe_hang(hang)
    return Failure(
        rank=hang.rank,
        exit_code=None,
        reason=reason,
        tail=tail,
        job_state=job_state,
    )
