"""A module that runs in a process of its own, and answers with lines of JSON among its other output."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from scalestudy.hardware.own_process import end_with
from scalestudy.util.errors import RunError, ScalestudyError, UserError
from scalestudy.util.tracebacks import locate_error

KEY = "scalestudy"
"""A line {KEY: {...}} is a message."""
ASKED_BY = "SCALESTUDY_ASKED_BY"
"""Environment variable: id of the process that asks."""

Say = Callable[[Mapping[str, Any]], None]


class Answer(NamedTuple):
    """The last message of a process (empty without one), its exit code and its standard error."""

    message: Mapping[str, Any]
    code: int
    errors: str

    def end(self) -> str:
        """How the process ended, in words, with the last line of its standard error."""
        if self.code < 0:
            return f"its process was ended by {signal.Signals(-self.code).name}"
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return f"its process ended with exit code {self.code} and no answer: {(lines or ['no output'])[-1]}"


def ask(
    module: str,
    *arguments: str,
    python: str = sys.executable,
    variables: Mapping[str, str] = os.environ,
    on_progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Run `python -m module` until it exits. Messages {"done", "all"} are passed to `on_progress`.

    Raises:
        UserError, RunError: If the answer is one: {"expected", "received", "action", "code"}.
    """
    # Capture standard error: messages of libraries would disturb the progress display.
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            [python, "-P", "-m", module, *arguments],
            text=True,
            errors="replace",
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**variables, ASKED_BY: str(os.getpid())},
        ) as process,
    ):
        assert process.stdout is not None
        answer: dict[str, Any] = {}
        try:
            for line in process.stdout:
                message = _message_of(line)
                if "done" in message and on_progress is not None:
                    on_progress(message["done"], max(message["all"], message["done"]))
                answer = message or answer
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        errors.seek(0)
        told = errors.read()
    if "expected" in answer:
        kind = RunError if answer.get("code") == RunError.exit_code else UserError
        raise kind(answer["expected"], answer["received"], answer["action"])
    return Answer(answer, code, told)


def answer(
    work: Callable[[Say], Mapping[str, Any]], expected: str, action_of: Callable[[BaseException], str]
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
        message = {"expected": error.expected, "received": error.received, "action": error.action}
        message |= {"code": error.exit_code}
    except (Exception, SystemExit) as error:
        message = {"expected": expected, "received": locate_error(error), "action": action_of(error)}
    say(message)
    os._exit(2 if "expected" in message else 0)


def say(message: Mapping[str, Any]) -> None:
    """Print a message on a line of its own."""
    sys.stdout.write(f"\n{json.dumps({KEY: message}, default=os.fspath)}\n")
    sys.stdout.flush()


def _message_of(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    content = message.get(KEY) if isinstance(message, dict) else None
    return content if isinstance(content, dict) else {}
