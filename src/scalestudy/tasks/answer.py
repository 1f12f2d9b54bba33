"""Answering for a task file in a process of its own, by the last line, whatever the file prints."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from scalestudy.util.errors import ScalestudyError
from scalestudy.util.tracebacks import told


def answer(path: str, find: Callable[[], dict[str, Any]]) -> NoReturn:
    """Print what is found as JSON, or why it cannot be, and end: 0, or 2 if it cannot.

    Nothing that the file has to say at exit comes after it.

    Args:
        path: The task file.
        find: What asks it.
    """
    try:
        found = find()
    except ScalestudyError as error:
        found = {"expected": error.expected, "received": error.received, "action": error.action}
    except SystemExit as error:
        action = "Have it raise an exception that says what is wrong, or return."
        found = {
            "expected": f"a task file that lets the program go on: {path}",
            "received": told(error),
            "action": action,
        }
    except Exception as error:
        action = "Run it with python to see the whole traceback."
        found = {"expected": f"a task file that works: {path}", "received": told(error), "action": action}
    sys.stdout.write(f"\n{json.dumps(found)}\n")
    sys.stdout.flush()
    os._exit(2 if "expected" in found else 0)
