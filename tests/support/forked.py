"""A fork of the tests' process in place of a new Python, which would first import everything again."""

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

UNEXPECTED = 70


class Forked:
    """A child process that calls `work` in a folder of its own, and ends with the returned exit code.

    It begins as a new Python would: with Python's own signal handlers, and the folder first on its path.

    Args:
        work: What to do.
        folder: Working directory; the child's output goes to the file `output` there.
        nohup: Whether the child ignores SIGHUP from its beginning, as under nohup.

    Attributes:
        pid: Its process id.
        returncode: Its exit code (negative: a signal); None before `wait` or `poll` have seen it end.
    """

    def __init__(
        self, work: Callable[[], int], folder: Path, *, nohup: bool = False
    ) -> None:
        self._output = folder / "output"
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        code = UNEXPECTED
        try:
            os.chdir(folder)
            os.closerange(3, 1024)
            os.dup2(os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            os.dup2(1, 2)
            sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False)
            sys.path.insert(0, str(folder))
            tempfile.tempdir = None
            for number in (signal.SIGALRM, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self) -> int:
        """Wait until it has ended, and return its exit code."""
        deadline = time.monotonic() + 600
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return code

    def kill(self) -> None:
        """Kill it, unless it was seen to end."""
        self.send_signal(signal.SIGKILL)

    def output(self) -> str:
        """Return what it has printed so far."""
        return self._output.read_text()

    def send_signal(self, number: int) -> None:
        """Send a signal to it, unless it was seen to end."""
        if self.poll() is None:
            os.kill(self.pid, number)
