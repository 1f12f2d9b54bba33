"""A worker in a process of its own, below a small one that sees how it ends and writes that down.

Whatever ends a worker, a signal, the kernel, `os._exit` in a task's file, a launcher is told only a number,
often that of another rank. The process above knows, on every machine and under every launcher.

SIGTERM, SIGINT (Ctrl-C) and SIGHUP (a terminal that is closed) may reach every process of a job: the worker
itself ignores them, and the process above has the run asked to stop, so that it leaves with a checkpoint.
"""

import contextlib
import faulthandler
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator

from pydantic import ValidationError

from scalestudy.hardware.memory import full_for, oom_kills
from scalestudy.hardware.process import end_with
from scalestudy.study.records import Cause
from scalestudy.study.run_folder import RunFolder
from scalestudy.util.errors import RunError, ScalestudyError
from scalestudy.util.escaping import escaped
from scalestudy.util.tracebacks import crashed_at, raised_at, user_frame, words_of

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals by which a queue, a user or a terminal that is closed ends a run: it leaves with a checkpoint."""
OTHERS = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that a launcher may send to the one process it knows, and that are meant for the worker."""
DONE = b"done\n"


def supervised(run: RunFolder, rank: int, work: Callable[[], int], stops: Collection[int] = STOPS) -> int:
    """Do the work in a child of this process; both return here, each with its exit code.

    A child that is stopped, or ends before its work is done, leaves `causes/RANK.json`. A signal that ended
    the child ends this process, too; an exit code of 0 before the work was done becomes 1.

    A signal of `stops` asks the run to stop. It ends the child at once if it comes from the local launcher,
    if a rank has failed before (launchers end the others so), and if it is a second Ctrl-C. Others are passed
    on. What the child leaves in its temporary folder is removed.
    """
    _write(lambda: run.forget_cause(rank))
    kills = oom_kills()
    readable, writable = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent, passed_on = os.getpid(), {*STOPS, *OTHERS} - {*stops}
    nohup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    # Signals are waited for, never caught: a handler would run only after a wait that has just begun.
    waited: set[int] = {signal.SIGCHLD, *STOPS, *OTHERS}
    with _temporary_folder() as folder:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
        child = os.fork()
        if child == 0:
            for number in stops:
                signal.signal(number, signal.SIG_IGN)
            for number in passed_on & {signal.SIGHUP}:  # by which the local launcher ends it, under nohup too
                signal.signal(number, signal.SIG_DFL)
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
                    with contextlib.suppress(OSError, RunError):  # the folder may have become another job's
                        run.ask_to_stop()
                return
            ended_by = number if number in stops else 0
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL if ended_by else number)

        for number in waited - {signal.SIGCHLD}:
            signal.signal(number, lambda *_: None)  # what is ignored is not waited for
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
    """The process of the local launcher that has started this one; 0 for other launchers."""
    return int(os.environ.get("SCALESTUDY_LAUNCHER", "0"))


def _work(rank: int, work: Callable[[], int], tell: int) -> int:
    """What the child does; it tells its parent that it is done, or what was raised, or where it crashed."""
    faulthandler.enable(tell, all_threads=False)  # 100 frames at most: less than the pipe holds
    try:
        code = work()
    except (Exception, SystemExit) as error:
        os.write(tell, cause_of(rank, error).model_dump_json().encode() + b"\n")
        raise
    os.write(tell, DONE)
    return code


def cause_of(rank: int, error: BaseException) -> Cause:
    """How a rank ends that has raised this."""
    ours = isinstance(error, ScalestudyError)
    if isinstance(error, SystemExit):
        code = exit_code(error)
    else:
        code = error.exit_code if isinstance(error, ScalestudyError) else 1
    return Cause(
        rank=rank, time=time.time(), host=socket.gethostname(), exit_code=code,
        kind="sys.exit" if isinstance(error, SystemExit) else "exception",
        words=escaped(str(error)) if ours else words_of(error) + full_for(error),
        frame="" if ours else user_frame(raised_at(error.__traceback__)),
    )  # fmt: skip


def exit_code(error: SystemExit) -> int:
    """The number that Python ends with after `sys.exit`: 1 for words."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _wait(
    run: RunFolder, rank: int, child: int, waited: set[int], on_signal: Callable[[int, int], None]
) -> tuple[int, bool]:
    """The status of the child when it has ended, and whether it was stopped until then.

    Signals, which are blocked, are handled meanwhile, each with the process that has sent it.
    """
    stopped = False
    while True:
        changed, status = os.waitpid(child, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
        if not changed:
            signalled = signal.sigwaitinfo(waited)
            if signalled.si_signo != signal.SIGCHLD and not _has_ended(child):
                on_signal(signalled.si_signo, signalled.si_pid)
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


def _has_ended(child: int) -> bool:
    """Whether a child has ended that was not waited for yet: a signal of now is not what ended it."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


@contextlib.contextmanager
def _temporary_folder() -> Iterator[str]:
    """A folder for what the child leaves behind (TensorFlow one file for each traced function)."""
    try:
        folder = tempfile.mkdtemp(prefix="scalestudy-worker-")
    except OSError:  # full: the work will say so, where it needs one
        yield tempfile.gettempdir()
        return
    parent = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == parent:
            shutil.rmtree(folder, ignore_errors=True)


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
