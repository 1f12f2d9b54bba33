"""Why a run failed: which rank was the first, and one sentence on its end. The same for all launchers."""

from collections.abc import Iterable
from pathlib import Path

from scalestudy.measure.heartbeat import ProgressTimer
from scalestudy.study.hang import first_hung, in_words
from scalestudy.study.records import Cause, Failure, Hang
from scalestudy.study.run_folder import RunFolder

TAIL_LINES = 15


def log_files(run: RunFolder, rank: int | None = None, *, job: bool = False) -> list[tuple[str, Path]]:
    """The run's logs with what stands before their lines: "[0] ", or "[job] ".

    As long as no rank has said anything, all there is to see is in the job's: why they could not be started.

    Args:
        run: The run.
        rank: One rank; all when None.
        job: The job's own log instead; nothing stands before its lines then.
    """
    folder = run.path / "logs"
    jobs = [file for file in (folder / "job.log",) if file.exists()]
    if job:
        return [("", file) for file in jobs]
    ranks = [int(file.stem[5:]) for file in folder.glob("rank-*.log") if file.stem[5:].isdigit()]
    if rank is None and jobs and not any(_says(folder / f"rank-{each}.log") for each in ranks):
        return [("[job] ", file) for file in jobs]
    return [
        (f"[{each}] ", folder / f"rank-{each}.log") for each in sorted(ranks) if rank is None or each == rank
    ]


def _says(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


def last_lines(run: RunFolder, name: str, count: int = TAIL_LINES) -> list[str]:
    """The last lines of a log that are not empty, "rank-0" or "job"; none where it cannot be read."""
    try:
        text = (run.path / "logs" / f"{name}.log").read_text(errors="replace")
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


HANG_EVERY = 1.0
"""Seconds between two looks at the heartbeats."""
HANG_GRACE = 15.0
"""Seconds beyond the limit in which ranks have to end by themselves."""


class HangDetector:
    """Detects from outside that no process of a run is alive: if all are stopped, none can end the run.

    Args:
        run: The run, whose heartbeats are those of its present processes only.
        size: Number of its processes.
        silent_after: Seconds without a heartbeat before a process has given one.
        every: Seconds between two looks.
    """

    def __init__(self, run: RunFolder, size: int, silent_after: float, every: float | None = None) -> None:
        self._run, self._size, self._silent_after = run, size, silent_after
        self._every = HANG_EVERY if every is None else every
        self._unchanged = ProgressTimer(5 * self._every)
        self._due = 0.0

    def check(self, now: float) -> Hang | None:
        """Which rank hangs, once no process has given a heartbeat; `now`: a clock's seconds."""
        if now < self._due:
            return None
        self._due = now + self._every
        signs = self._run.signs()
        seconds = self._unchanged.look([sign.written for sign in signs])
        limit = max((sign.due for sign in signs), default=self._silent_after) + HANG_GRACE
        return first_hung(signs, signs, self._size, seconds) if seconds > limit else None


def failure_of_hang(run: RunFolder, silence: Hang, job_state: str | None = None) -> Failure:
    """The failure of a run that was ended since nothing moved, with the last lines of the rank's log."""
    tail = last_lines(run, f"rank-{silence.rank or 0}")
    return Failure(
        rank=silence.rank, exit_code=None, reason=in_words(silence), tail=tail, job_state=job_state
    )
