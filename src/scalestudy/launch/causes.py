"""Why a run failed: which rank was the first, and one sentence on its end. The same for all launchers."""

from collections.abc import Iterable

from scalestudy.launch.logs import last_lines
from scalestudy.study.records import Cause, Failure
from scalestudy.study.run_folder import RunFolder

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


def first_cause(causes: Iterable[Cause]) -> Cause | None:
    """The end that brought about the others: the earliest, and of several at once one that is no echo.

    An echo is what ranks suffer when another is gone: an exception out of the framework, and not out of the
    user's own files, or being ended by a launcher or a framework. The surest of all is an exception that says
    so; an abort beside it may be what it speaks of.
    """
    found = sorted(causes, key=lambda cause: cause.time)
    near = [cause for cause in found if cause.time - found[0].time <= WAKE]
    return min(near, key=_echo, default=None)


def failure_of(
    run: RunFolder, cause: Cause, *, hosts: bool = False, job_state: str | None = None, last: str = ""
) -> Failure:
    """The failure to write down for a run that ended by this.

    Args:
        run: The run, for the log of the rank.
        cause: How its first rank ended.
        hosts: Whether to name the rank's host.
        job_state: The queue's last word, where there is a queue.
        last: What to quote of the rank's log where nothing else is known; "" for nothing.
    """
    return Failure(
        rank=cause.rank,
        exit_code=cause.exit_code,
        signal=cause.signal,
        reason=sentence(cause, hosts=hosts, last=last),
        tail=last_lines(run, f"rank-{cause.rank}"),
        job_state=job_state,
    )


def sentence(cause: Cause, *, hosts: bool = False, last: str = "") -> str:
    """One sentence on how a rank ended, without a full stop; for the arguments see `failure_of`."""
    who, on = f"rank {cause.rank}", f" on {cause.host}" if hosts and cause.host else ""
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
    said = cause.words or last
    return f"{ended}{f': {said}' if said else ''}{at}"


def _memory(cause: Cause) -> str:
    if cause.signal != "SIGKILL":
        return ""
    if cause.oom_kills is None:
        return " (often: out of memory)"
    if cause.oom_kills == 0:
        return ", but not by the kernel for want of memory: a person or a program has sent it"
    several = "es" if cause.oom_kills > 1 else ""
    return f": out of memory (the kernel killed {cause.oom_kills} process{several} of its cgroup for it)"


def _echo(cause: Cause) -> int:
    """0 for an end of a rank's own, 1 for what may be an echo, 2 for one that speaks of another rank."""
    if cause.kind == "signal":
        return int(cause.signal in ECHOES)
    if cause.kind not in ("exception", "exit") or cause.frame:
        return 0
    return 2 if any(words in cause.words for words in OF_OTHERS) else 1
