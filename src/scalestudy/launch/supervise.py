"""A worker in a process of its own, below a small one that sees how it ends and writes that down.

Whatever ends a worker, a signal, the kernel, `os._exit` in a task's file, a launcher is told only a number,
often that of another rank. The process above knows, on every machine and under every launcher.

SIGTERM is how a queue tells a job to leave its nodes. It reaches every process of the job: the worker itself
ignores it, and the process above has the run asked to stop, so that it leaves with a checkpoint.
"""

import contextlib
import faulthandler
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from types import FrameType

from pydantic import ValidationError

from scalestudy.hardware.memory import oom_kills
from scalestudy.hardware.process import end_with
from scalestudy.study.records import Cause
from scalestudy.study.run_folder import RunFolder
from scalestudy.util.errors import RunError, ScalestudyError
from scalestudy.util.escaping import escaped
from scalestudy.util.tracebacks import crashed_at, raised_at, user_frame, words_of

PASSED_ON = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that a launcher may send to the one process it knows, and that are meant for the worker."""
HANDLED = (signal.SIGTERM, *PASSED_ON)
DONE = b"done\n"
Handler = Callable[[int, FrameType | None], None]


def supervised(run: RunFolder, rank: int, work: Callable[[], int]) -> int:
    """Do the work in a child of this process; both return here, each with its exit code.

    A child that is stopped, or ends before its work is done, leaves `causes/RANK.json`. A signal that ended
    the child ends this process, too; an exit code of 0 before the work was done becomes 1.

    SIGTERM asks the run to stop; where a rank has failed before, launchers send it to end the others: then it
    ends the child.
    """
    _write(lambda: run.forget_cause(rank))
    kills = oom_kills()
    readable, writable = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent = os.getpid()
    # Signals are waited for, never caught: a handler would run only after a wait that has just begun.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, *HANDLED))
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # by which the local launcher ends it, under nohup too
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(readable)
        end_with(parent)
        return _work(rank, work, writable)
    os.close(writable)

    terminated = False

    def pass_on(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal terminated
        if run.causes():
            terminated = True
            pass_on(signal.SIGKILL, frame)
        else:
            with contextlib.suppress(OSError, RunError):  # the folder may have become another job's
                run.ask_to_stop()

    handlers: dict[int, Handler] = {**dict.fromkeys(PASSED_ON, pass_on), signal.SIGTERM: leave}
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    status, stopped = _wait(run, rank, child, handlers)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    code = os.waitstatus_to_exitcode(status)
    if terminated and code == -signal.SIGKILL:
        code = -signal.SIGTERM
    message = _read(readable)
    if message.endswith(DONE):
        return code
    if not stopped:
        cause = _cause(rank, code, message.decode(errors="replace"), kills)
        _write(lambda: run.write_cause(cause))
    if code < 0:
        _end_by(-code)
    return code or 1


def _work(rank: int, work: Callable[[], int], tell: int) -> int:
    """What the child does; it tells its parent that it is done, or what was raised, or where it crashed."""
    faulthandler.enable(tell, all_threads=False)  # 100 frames at most: less than the pipe holds
    try:
        code = work()
    except (Exception, SystemExit) as error:
        os.write(tell, _raised(rank, error).model_dump_json().encode() + b"\n")
        raise
    os.write(tell, DONE)
    return code


def _raised(rank: int, error: BaseException) -> Cause:
    ours = isinstance(error, ScalestudyError)
    if isinstance(error, SystemExit):
        code = exit_code(error)
    else:
        code = error.exit_code if isinstance(error, ScalestudyError) else 1
    return Cause(
        rank=rank, time=time.time(), host=socket.gethostname(), exit_code=code,
        kind="sys.exit" if isinstance(error, SystemExit) else "exception",
        words=escaped(str(error)) if ours else words_of(error),
        frame="" if ours else user_frame(raised_at(error.__traceback__)),
    )  # fmt: skip


def exit_code(error: SystemExit) -> int:
    """The number that Python ends with after `sys.exit`: 1 for words."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _wait(run: RunFolder, rank: int, child: int, handlers: Mapping[int, Handler]) -> tuple[int, bool]:
    """The status of the child when it has ended, and whether it was stopped until then.

    Signals, which are blocked, are handled meanwhile.
    """
    stopped = False
    while True:
        changed, status = os.waitpid(child, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
        if not changed:
            number = signal.sigwait((signal.SIGCHLD, *handlers))
            if number in handlers:
                handlers[number](number, None)
        elif os.WIFSTOPPED(status):
            cause = Cause(
                rank=rank, time=time.time(), host=socket.gethostname(), kind="stopped",
                signal=signal.Signals(os.WSTOPSIG(status)).name,
            )  # fmt: skip
            stopped = True
            _write(lambda cause=cause: run.write_cause(cause))  # type: ignore[misc]
        elif os.WIFCONTINUED(status):
            stopped = False
            _write(lambda: run.forget_cause(rank))
        else:
            return status, stopped


def _read(readable: int) -> bytes:
    """All that the child has told; children of its own may still hold the other end."""
    os.set_blocking(readable, False)
    parts = []
    with contextlib.suppress(BlockingIOError):
        while part := os.read(readable, 1 << 16):
            parts.append(part)
    return b"".join(parts)


def _cause(rank: int, code: int, message: str, kills: int | None) -> Cause:
    """How a child ended that was not done: in its own words, else by its exit code (negative: a signal)."""
    last = message.rstrip("\n").rpartition("\n")[2]
    if code >= 0 and last.startswith("{"):
        with contextlib.suppress(ValidationError):
            return Cause.model_validate_json(last)
    now, host = time.time(), socket.gethostname()
    if code >= 0:
        return Cause(rank=rank, time=now, host=host, kind="os._exit", exit_code=code)
    if message:  # which the log is to hold as well
        print(message, file=sys.stderr, flush=True)
    after = oom_kills()
    return Cause(
        rank=rank, time=now, host=host, kind="signal", signal=signal.Signals(-code).name,
        frame=user_frame(crashed_at(message)),
        oom_kills=None if kills is None or after is None else max(0, after - kills),
    )  # fmt: skip


def _write(write: Callable[[], None]) -> None:
    """Write if that can be; the worker's end is what counts."""
    try:
        write()
    except (OSError, RunError) as error:  # the folder may have become another job's
        print(f"scalestudy: how this rank ended could not be written down: {error}", file=sys.stderr)


def _end_by(number: int) -> None:
    """End this process by a signal, and without a core file: the child may have left one."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.kill(os.getpid(), number)
