"""A worker process and its supervisor, a small parent process that records how the worker ends.

A launcher sees only an exit code, often of another rank. The parent process sees the actual end of the
worker: a signal, the out-of-memory killer, or `os._exit` in a task file. This works under every launcher.

SIGTERM, SIGINT (Ctrl-C) and SIGHUP (a closed terminal) may reach every process of a job. The worker ignores
them; its parent asks the run to stop, so that it ends with a checkpoint.
"""

import contextlib
import faulthandler
import os
import resource
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from pydantic import ValidationError

from scalestudy.hardware.own_process import full_for, oom_kills
from scalestudy.store.records import Cause
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.child_process import end_with, has_ended
from scalestudy.util.errors import RunError, ScalestudyError
from scalestudy.util.files import spare_space
from scalestudy.util.printable import escape
from scalestudy.util.temporary import temporary_folder
from scalestudy.util.tracebacks import crashed_at, error_text, raised_at, user_frame

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals by which a queue, a user or a closed terminal stops a run, which then saves a checkpoint."""
OTHERS = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that a launcher may send to this process, and that are passed on to the worker."""
DONE = b"done\n"


def supervise(
    run: RunFolder,
    rank: int,
    work: Callable[[], int],
    stops: Collection[int] = STOPS,
) -> int:
    """Run `work` in a child process. Parent and child both return from here, each with its exit code.

    If the child is suspended, or ends before its work is done, `causes/RANK.json` is written. A signal that
    ended the child also ends this process; exit code 0 before the work was done becomes 1.

    A signal in `stops` asks the run to stop. It kills the child at once if the local launcher sent it, if a
    rank has failed before (launchers then end the others by it), or if it is a second Ctrl-C. Other signals
    are passed on. The child's temporary folder is removed.
    """
    _write(lambda: run.forget_cause(rank))
    kills = oom_kills()
    readable, writable = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent, passed_on = os.getpid(), {*STOPS, *OTHERS} - {*stops}
    nohup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    # Signals are waited for, never caught: one just before a blocking wait would be handled only after it.
    waited: set[int] = {signal.SIGCHLD, *STOPS, *OTHERS}
    with _temporary_folder() as folder, spare_space(run.path):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
        child = os.fork()
        if child == 0:
            for number in stops:
                signal.signal(number, signal.SIG_IGN)
            if signal.SIGHUP in passed_on:
                # The local launcher ends it by this, also under nohup, by which it would be ignored.
                signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(readable)
            end_with(parent)
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            return _work(rank, work, writable)
        os.close(writable)
        asked = ended_by = 0

        def on_signal(number: int, sender: int) -> None:
            nonlocal asked, ended_by
            again = bool(asked) and number == signal.SIGINT
            if number in stops and not (again or sender == _launcher() or run.causes()):
                if not (number == signal.SIGHUP and nohup):
                    asked = number
                    # The folder may belong to another job now.
                    with contextlib.suppress(OSError, RunError):
                        run.ask_to_stop(
                            f"rank {rank} received {signal.Signals(number).name}"
                        )
                return
            ended_by = number if number in stops else 0
            with contextlib.suppress(ProcessLookupError):
                # The worker ignores signals in `stops`, so that only SIGKILL ends it.
                os.kill(child, signal.SIGKILL if ended_by else number)

        for number in waited - {signal.SIGCHLD}:
            # POSIX leaves open whether an ignored signal that is blocked is kept; Linux keeps it.
            signal.signal(number, lambda *_: None)
        # If SIGCHLD were ignored, the kernel would reap the child, and its status would be lost.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        status, stopped = _wait(run, rank, child, waited, on_signal)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    code = os.waitstatus_to_exitcode(status)
    if ended_by and code == -signal.SIGKILL:
        code = -ended_by
    message = _read(readable)
    if message.endswith(DONE):
        return code
    if not stopped:
        cause = _cause(rank, code, message.decode(errors="replace"), kills)
        _write(lambda: run.write_cause(cause))
    if code < 0:
        _end_by(-code)
    return code or 1


def _launcher() -> int:
    return int(os.environ.get("SCALESTUDY_LAUNCHER", "0"))


def _work(rank: int, work: Callable[[], int], tell: int) -> int:
    """Run the work in the child, and write to `tell` that it is done, the exception, or the crash's stack."""
    # At most 100 frames, which fit the pipe's buffer: nobody reads from it before the child has ended.
    faulthandler.enable(tell, all_threads=False)
    try:
        code = work()
    except (Exception, SystemExit) as error:
        os.write(tell, cause_of(rank, error).model_dump_json().encode() + b"\n")
        raise
    os.write(tell, DONE)
    return code


def cause_of(rank: int, error: BaseException) -> Cause:
    """Return the cause to record for a rank that raised `error`."""
    if isinstance(error, ScalestudyError):
        # Its message says all; the frame that raised it is none of the user's.
        return _now(
            rank,
            exit_code=error.exit_code,
            kind="exception",
            words=escape(str(error)),
            frame="",
        )
    kind, code = "exception", 1
    if isinstance(error, SystemExit):
        kind, code = "sys.exit", exit_code_of(error)
    return _now(
        rank,
        exit_code=code,
        kind=kind,
        words=error_text(error) + full_for(error),
        frame=user_frame(raised_at(error.__traceback__)),
    )


def cause_of_code(
    rank: int,
    code: int,
    kills: int | None,
    *,
    unsaid: str,
    frame: str = "",
) -> Cause:
    """Return the cause to record for a rank that gave none itself.

    Args:
        rank: The rank.
        code: Its exit code; negative for a signal.
        kills: `oom_kills` before it was started.
        unsaid: Kind of an end that is no signal.
        frame: Where in the user's files it crashed; "" if unknown.
    """
    if code >= 0:
        return _now(rank, kind=unsaid, exit_code=code)
    after = oom_kills()
    counted = None
    if kills is not None and after is not None:
        counted = max(0, after - kills)
    return _now(
        rank,
        kind="signal",
        signal=signal.Signals(-code).name,
        frame=frame,
        oom_kills=counted,
    )


def _now(rank: int, **details: Any) -> Cause:
    return Cause(
        rank=rank,
        time=time.time(),
        host=socket.gethostname(),
        **details,
    )


def exit_code_of(error: SystemExit) -> int:
    """Return Python's exit code for a `sys.exit`: 1 for a text."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        # Only the lowest 8 bits reach whoever waits for the process.
        return error.code & 0xFF
    return 1


def _wait(
    run: RunFolder,
    rank: int,
    child: int,
    waited: set[int],
    on_signal: Callable[[int, int], None],
) -> tuple[int, bool]:
    """Wait for the child; return its status and whether it was suspended when it ended.

    Blocked signals are handled meanwhile: `on_signal` receives the signal and the sender's process id.
    """
    stopped = False
    while True:
        changed, status = os.waitpid(child, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
        if not changed:
            signalled = signal.sigwaitinfo(waited)
            if signalled.si_signo != signal.SIGCHLD and not has_ended(child):
                on_signal(signalled.si_signo, signalled.si_pid)
        elif os.WIFSTOPPED(status):
            cause = _now(
                rank,
                kind="stopped",
                signal=signal.Signals(os.WSTOPSIG(status)).name,
            )
            stopped = True
            _write(lambda cause=cause: run.write_cause(cause))  # type: ignore[misc]
        elif os.WIFCONTINUED(status):
            stopped = False
            _write(lambda: run.forget_cause(rank))
        else:
            return status, stopped


@contextlib.contextmanager
def _temporary_folder() -> Iterator[str]:
    """Yield a folder for the child's temporary files (TensorFlow leaves one for each traced function)."""
    with contextlib.ExitStack() as held:
        try:
            folder = str(held.enter_context(temporary_folder("scalestudy-worker-")))
        except OSError:
            # A full disk: the worker reports it if it matters.
            folder = tempfile.gettempdir()
        yield folder


def _read(readable: int) -> bytes:
    """Read everything that the child wrote, without waiting: its own children may hold the pipe open."""
    os.set_blocking(readable, False)
    parts = []
    with contextlib.suppress(BlockingIOError):
        while part := os.read(readable, 1 << 16):
            parts.append(part)
    return b"".join(parts)


def _cause(
    rank: int,
    code: int,
    message: str,
    kills: int | None,
) -> Cause:
    """Return how an unfinished child ended: its own record, else by its exit code (negative: a signal)."""
    last = message.rstrip("\n").rpartition("\n")[2]
    if code >= 0 and last.startswith("{"):
        with contextlib.suppress(ValidationError):
            return Cause.model_validate_json(last)
    if code >= 0:
        return cause_of_code(rank, code, kills, unsaid="os._exit")
    if message:  # also into the log
        print(message, file=sys.stderr, flush=True)
    return cause_of_code(
        rank,
        code,
        kills,
        unsaid="os._exit",
        frame=user_frame(crashed_at(message)),
    )


def _write(write: Callable[[], None]) -> None:
    """Call `write`, and only print its errors, since the worker's exit code must not change."""
    try:
        write()
    except (OSError, RunError) as error:
        # A full disk, or a folder that belongs to another job now.
        print(
            f"scalestudy: how this rank ended could not be written down: {error}",
            file=sys.stderr,
        )


def _end_by(number: int) -> None:
    """End this process by a signal, without a core file: the child may have left one."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.kill(os.getpid(), number)
