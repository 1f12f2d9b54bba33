"""Make a forked process what a new Python would be: `python -m MODULE …` or `python FILE …`.

Forking saves the imports, most of the processor time of a short process. All else is as after a new start:
working folder, variables, cores, session, signal handlers, path of modules, streams, `__main__`, exit code.
"""

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import io
import os
import random
import re
import resource
import runpy
import signal
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from python_start import PythonStart

TITLE = 4000
"""Bytes that a fork server reserves in its command line, for those of its children."""
UNBUFFERED = "PYTHONUNBUFFERED"
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
THREADS = "OMP_NUM_THREADS"
TEXT = {
    1: (sys.stdout.encoding, sys.stdout.errors),
    2: (sys.stderr.encoding, sys.stderr.errors),
}
"""Encoding of standard output and error, and what is done about errors: as this process was started."""
_ANY_NUMBER = re.compile(r"\d+")


def become(
    start: PythonStart, streams: Sequence[int], installed: Sequence[str]
) -> NoReturn:
    """Run what `start` asks for in this process, a fresh fork, and end it.

    Args:
        start: What to become.
        streams: Descriptors of its standard input, output and error.
        installed: The end of `sys.path` that every Python of this environment has.
    """
    code = 70
    try:
        _take_place(start, streams)
        _forget_parent(start, installed)
        code = _run(start)
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        if code < 0:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)


def _take_place(start: PythonStart, streams: Sequence[int]) -> None:
    """Take over what the kernel knows of a process."""
    if start.new_session:
        os.setsid()
    above = [fcntl.fcntl(stream, fcntl.F_DUPFD, 10) for stream in streams]
    for number, stream in enumerate(above):
        os.dup2(stream, number)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.chdir(start.folder)
    os.sched_setaffinity(0, start.cores)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _show_command(start.command)


def _forget_parent(start: PythonStart, installed: Sequence[str]) -> None:
    """Set what Python sets when it starts."""
    atexit._clear()
    os.environ.clear()
    os.environ.update(start.environment)
    tempfile.tempdir = None
    random.seed()
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()
    _set_threads(start.environment.get(THREADS, ""))
    sys.orig_argv = start.command
    first = os.path.dirname(os.path.abspath(start.file)) if start.file else start.folder
    brought = start.environment.get("PYTHONPATH", "")
    sys.path[:] = [
        *([] if start.safe else [first]),
        *(os.path.abspath(entry) for entry in brought.split(os.pathsep) if entry),
        *installed,
    ]
    importlib.invalidate_caches()
    sys.dont_write_bytecode = bool(start.environment.get(NO_BYTECODE))
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    unbuffered = bool(start.environment.get(UNBUFFERED))
    sys.stdout = sys.__stdout__ = _writer(1, unbuffered)
    sys.stderr = sys.__stderr__ = _writer(2, unbuffered)
    gc.enable()


def _writer(number: int, unbuffered: bool) -> io.TextIOWrapper:
    buffering = 0 if unbuffered else -1
    raw = open(number, "wb", buffering, closefd=False)  # noqa: SIM115
    encoding, errors = TEXT[number]
    lines = not unbuffered and (number == 2 or os.isatty(number))
    return io.TextIOWrapper(
        raw, encoding, errors, line_buffering=lines, write_through=unbuffered
    )


def _set_threads(value: str) -> None:
    """Set the threads of OpenMP and of linear algebra, which are otherwise read when a library is loaded."""
    if not _ANY_NUMBER.fullmatch(value) or "numpy" not in sys.modules:
        return
    from threadpoolctl import threadpool_limits

    threadpool_limits(int(value))


def _run(start: PythonStart) -> int:
    """Run the module or file; return the exit code, or the number of a signal to end by, negative."""
    try:
        if start.module:
            sys.argv[:] = [start.module, *start.arguments]
            runpy.run_module(start.module, run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = [start.file, *start.arguments]
            runpy.run_path(start.file, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        error.__traceback__ = _below(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _below(frames: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback without this file and what runs modules."""
    while frames is not None and (
        frames.tb_frame.f_code.co_filename == __file__
        or "runpy" in frames.tb_frame.f_code.co_filename
    ):
        frames = frames.tb_next
    return frames


def _show_command(words: Sequence[str]) -> None:
    """Show the command line in lists of processes, as far as there is space.

    Where the last byte of the space is not zero, Linux shows the text up to the first zero.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    text = " ".join(words).encode(errors="surrogateescape")
    with contextlib.suppress(ValueError):
        if end - begin >= TITLE:
            space = end - begin
            ctypes.memmove(
                begin, text[: space - 2].ljust(space - 1, b"\0") + b".", space
            )
