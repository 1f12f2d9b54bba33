"""Run a module in a separate process that answers with lines of JSON among its other output."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from scalestudy.util.errors import UserError

KEY = "scalestudy"
"""A line {KEY: {...}} is a message to this module."""


def ask_module(
    module: str, *arguments: str, on_progress: Callable[[int, int], None] | None, **environment: str
) -> tuple[Mapping[str, Any], int, str]:
    """Run `python -m module` until it exits.

    Messages {"done", "all"} are passed to `on_progress`; the last message is the answer.

    Returns:
        The answer, empty without one; the exit code; and the last lines of standard error.

    Raises:
        UserError: If the answer is an error {"expected", "received", "action"}.
    """
    # Capture standard error: messages of libraries would disturb the progress display.
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments], text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **environment},
    ) as process:  # fmt: skip
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
        last = [line.strip() for line in errors.read().splitlines() if line.strip()][-3:]
    if "expected" in answer:
        raise UserError(answer["expected"], answer["received"], answer["action"])
    return answer, code, " / ".join(last)[-500:]


def _message_of(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    content = message.get(KEY) if isinstance(message, dict) else None
    return content if isinstance(content, dict) else {}
