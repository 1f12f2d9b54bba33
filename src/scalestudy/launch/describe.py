"""Asking a user's task file about its data and its model, in a process of its own."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from scalestudy import modules
from scalestudy.errors import UserError
from scalestudy.machine import installed
from scalestudy.study.task_file import read_task_file

WANTED = ("data", "kind")


def describe_task(path: Path | str) -> dict[str, Any]:
    """What the task file says: {"data": source or None, "kind": "masks", "classes" or None}.

    What stands in the file as a literal (`data = "folder"`) is read, which costs nothing. Only for what is
    computed there the file is run, in a process of its own; without TensorFlow, as on a login node, that
    stays unknown.

    Raises:
        UserError: If the file is no Python, or cannot be imported where it has to be.
    """
    read = read_task_file(Path(path))
    if read.unknown & set(WANTED) and installed.has_tensorflow():
        return _ask(modules.DESCRIBE_TASK, path)
    return {name: read.values.get(name) for name in WANTED}


def build_task(path: Path | str, info: dict[str, Any]) -> int:
    """Build the task's model once, its weights downloaded where they are missing.

    Args:
        path: The task file.
        info: Fields of `tasks.base.DataInfo`.

    Returns:
        Number of its parameters.

    Raises:
        UserError: If it cannot be built.
    """
    return int(_ask(modules.BUILD_TASK, path, json.dumps(info))["parameters"])


def _ask(module: str, path: Path | str, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", module, str(path), *more]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError) as error:
        raise UserError(
            f"a task file that can be imported: {path}",
            _end(done),
            "Run it with python to see the whole traceback.",
        ) from error
    if "expected" in answer:
        raise UserError(answer["expected"], answer["received"], answer["action"])
    return answer


def _end(done: "subprocess.CompletedProcess[str]") -> str:
    """How a process ended that has given no answer."""
    if done.returncode < 0:
        return f"its process was ended by {signal.Signals(-done.returncode).name}"
    last = (done.stderr.strip().splitlines() or ["no output"])[-1]
    return f"its process ended with exit code {done.returncode} and no answer: {last}"
