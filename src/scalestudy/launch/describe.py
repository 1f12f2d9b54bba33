"""Asking a user's task file about its data and its model, in a process of its own."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from scalestudy import modules
from scalestudy.errors import UserError
from scalestudy.machine import installed


def describe_task(path: Path | str) -> dict[str, Any]:
    """What the task file says: {"data": source or None, "kind": "masks", "classes" or None}.

    Without TensorFlow, as on a login node, the file is read and not run: then only what it says in plain
    texts (`data = "folder"`) is known.

    Raises:
        UserError: If the file cannot be imported.
    """
    if not installed.has_tensorflow():
        return plain_texts(Path(path))
    return _ask(modules.DESCRIBE_TASK, path)


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


def plain_texts(path: Path) -> dict[str, Any]:
    """`data` and `kind` of a task file, where they are plain texts at its top level.

    Raises:
        UserError: If the file is no Python.
    """
    found: dict[str, Any] = {"data": None, "kind": None}
    try:
        statements = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"a task file that can be imported: {path}",
            f"{type(error).__name__}: {error}",
            "Run it with python to see the whole traceback.",
        ) from error
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name) and target.id in found:
                    found[target.id] = statement.value.value
    return found


def _ask(module: str, path: Path | str, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", module, str(path), *more]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError) as error:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(
            f"a task file that can be imported: {path}",
            last,
            "Run it with python to see the whole traceback.",
        ) from error
    if "expected" in answer:
        raise UserError(answer["expected"], answer["received"], answer["action"])
    return answer
