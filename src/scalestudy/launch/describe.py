"""Asking a user's task file about its data, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from scalestudy.errors import UserError


def describe_task(path: Path | str) -> dict[str, Any]:
    """What the task file says: {"data": source or None, "kind": "masks", "classes" or None}.

    Raises:
        UserError: If the file cannot be imported.
    """
    command = [sys.executable, "-m", "scalestudy.tasks.describe", str(path)]
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
