"""Child processes: modules that run in one and answer its parent, and the end of a child and of its parent.

Answers are lines of JSON among the other output of the child.
"""

import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from scalestudy.util.errors import RunError, ScalestudyError, UserError
from scalestudy.util.modules import TASK_FILE
from scalestudy.util.tracebacks import locate_error

KEY = "scalestudy"
"""A line {KEY: {...}} is a message."""
ASKED_BY = "SCALESTUDY_ASKED_BY"
"""Environment variable: id of the process that asks."""
WITHIN = "SCALESTUDY_ANSWER_WITHIN"
"""Environment variable: seconds within which a user's file must return, or give its next sample."""
TIMEOUT = "Timeout ("
"""Text that faulthandler writes before the stacks of a process that exceeded its time."""

POLL = 0.05
"""Seconds between two looks whether a process has ended."""
PIPE_BYTES = 1 << 20
"""The most that a pipe holds on Linux."""

Say = Callable[[Mapping[str, Any]], None]


class Answer(NamedTuple):
    """The last message of a process (empty without one), its exit code and its standard error."""

    message: Mapping[str, Any]
    code: int
    errors: str

    def end(self) -> str:
        """How the process ended, in words, with the last line of its standard error."""
        # As subprocess reports a signal.
        if self.code < 0:
            return f"its process was ended by {signal.Signals(-self.code).name}"
        last = "no output"
        for line in self.errors.splitlines():
            if line.strip():
                last = line.strip()
        return f"its process ended with exit code {self.code} and no answer: {last}"


def ask_module(
    module: str,
    *arguments: str,
    python: str = sys.executable,
    variables: Mapping[str, str] = os.environ,
    on_progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Run `python -m module` until it exits. Messages {"done", "all"} are passed to `on_progress`.

    What it started and left in its process group, such as a tracker or a server, ends with it.

    Raises:
        UserError, RunError: If the answer is one: {"expected", "received", "action", "code"}.
    """
    # Capture standard error: messages of libraries would disturb the progress display. In a file, since a
    # pipe that is not read meanwhile fills up, and its writer waits for ever.
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            [python, "-P", "-m", module, *arguments],
            # A session of its own, so that what it leaves behind is one group to end.
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**variables, ASKED_BY: str(os.getpid())},
        ) as process,
    ):
        answer: dict[str, Any] = {}
        try:
            # The last message is the answer; progress may come before it, and other output between.
            for line in _lines_of(process):
                message = _message_of(line)
                if "done" in message and on_progress is not None:
                    done = message["done"]
                    on_progress(done, max(message["all"], done))
                if message:
                    answer = message
        finally:
            # Before `wait`, after which the id may be another's.
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        errors.seek(0)
        error_output = errors.read()
    if "expected" in answer:
        kind: type[ScalestudyError] = UserError
        if answer.get("code") == RunError.exit_code:
            kind = RunError
        raise kind(answer["expected"], answer["received"], answer["action"])
    return Answer(answer, code, error_output)


def ask_file(
    work: str,
    file: str,
    request: Mapping[str, Any],
    within: float,
    *,
    python: str = sys.executable,
    variables: Mapping[str, str] = os.environ,
    on_progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Run the code of a user's file in a process of its own; see `tasks.child` for `work`.

    Raises:
        UserError, RunError: As `ask_module`, or if the code does not return `within` seconds; it names the line.
    """
    text = json.dumps({**request, "file": file})
    limited = {**variables, WITHIN: str(within)}
    answer = ask_module(
        TASK_FILE,
        work,
        text,
        python=python,
        variables=limited,
        on_progress=on_progress,
    )
    if answer.code and TIMEOUT in answer.errors:
        line = re.search(
            rf'File "{re.escape(file)}", line (\d+) in (\S+)',
            answer.errors,
        )
        received = "it did not finish"
        if line:
            received += f": line {line[1]} (in {line[2]}) does not return"
        raise UserError(
            f"code of {file} that answers within {within:.0f} s",
            received,
            "Remove code that waits or loops, and give samples by a generator; if it needs that long, raise"
            " progress_timeout under [launch].",
        )
    return answer


def answer_and_exit(
    work: Callable[[Say], Mapping[str, Any]],
    expected: str,
    action_of: Callable[[BaseException], str],
) -> NoReturn:
    """Print what `work` returns, or its error, as the last message, and exit with code 0 or 2.

    `expected` and `action_of` tell errors that are not ours. This process ends with the one that asked. Exit
    handlers of a user's code do not run, so that nothing is printed after the answer.
    """
    if ASKED_BY in os.environ:
        end_with(int(os.environ[ASKED_BY]))
    try:
        message = work(say)
    except ScalestudyError as error:
        message = {
            "expected": error.expected,
            "received": error.received,
            "action": error.action,
        }
        message |= {"code": error.exit_code}
    # SystemExit, since a user's file may call sys.exit().
    except (Exception, SystemExit) as error:
        message = {
            "expected": expected,
            "received": locate_error(error),
            "action": action_of(error),
        }
    say(message)
    os._exit(2 if "expected" in message else 0)


def say(message: Mapping[str, Any]) -> None:
    """Print a message on a line of its own."""
    # A user's code may have printed a line without an end.
    sys.stdout.write(f"\n{json.dumps({KEY: message}, default=os.fspath)}\n")
    sys.stdout.flush()


def end_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends (Linux only; elsewhere no effect)."""
    if sys.platform != "linux":
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    # The kernel says nothing of a parent that ended before the call.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def has_ended(child: int) -> bool:
    """Whether a child has ended; it is not waited for, so that its id stays its own."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _lines_of(process: "subprocess.Popen[bytes]") -> Iterator[str]:
    """Yield what a process prints, line by line, until it has ended.

    The end of its output is no sign of that: processes that it started hold the pipe as long as they live.
    """
    assert process.stdout is not None
    output, begun, left = process.stdout.fileno(), b"", PIPE_BYTES
    while left > 0:
        # Before reading: what an ended process printed is in the pipe by now.
        ended = has_ended(process.pid)
        wait = POLL
        if ended:
            wait = 0
        readable, _, _ = select.select([output], [], [], wait)
        part = b""
        if readable:
            part = os.read(output, PIPE_BYTES)
        if ended and not part:
            return
        # It has closed its output, or is about to end: `select` would return at once.
        if readable and not part:
            time.sleep(POLL)
        # What it left behind may print for ever: no more is read than a pipe can hold.
        if ended:
            left -= len(part)
        *lines, begun = (begun + part).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


def _message_of(line: str) -> dict[str, Any]:
    """Return the content of a message; {} for a line that is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    # A user's code may print JSON of its own.
    if not isinstance(message, dict):
        return {}
    content = message.get(KEY)
    if not isinstance(content, dict):
        return {}
    return content
