"""Build the model of a user's task file in a separate process."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from scalestudy.config.settings import LaunchSettings
from scalestudy.data.child import ask
from scalestudy.launch.environments import python_of, variables_of
from scalestudy.tasks.task_file import REMEDY, WITHIN
from scalestudy.util import modules
from scalestudy.util.errors import UserError

PROGRESS_TIMEOUT = LaunchSettings().progress_timeout
TIMEOUT = "Timeout ("
"""Text that faulthandler writes before the stacks of a process that exceeded its time."""


def build_task(
    path: Path | str,
    info: dict[str, Any],
    within: float = PROGRESS_TIMEOUT,
    environment: str | None = None,
) -> tuple[str, ...]:
    """Build the task's model once, download missing pretrained weights, and try it on two samples.

    Args:
        path: The task file.
        info: {"prepared": folder of the prepared data set}. Without it nothing is built or downloaded, and
            only what needs no data is checked.
        within: Time limit for importing the file in seconds.
        environment: Folder of the virtual environment to build it in; None for that of this process.

    Returns:
        Likely mistakes in it.

    Raises:
        UserError: If the model cannot be built or does not fit its data.
    """
    python = python_of(environment) if environment else sys.executable
    variables = variables_of(environment, os.environ) if environment else os.environ
    variables = {**variables, WITHIN: str(within)}
    answer = ask(modules.BUILD_TASK, str(path), json.dumps(info), python=python, variables=variables)
    if TIMEOUT in answer.errors and not answer.message:
        raise _too_long(path, answer.errors, within)
    if not answer.message:
        raise UserError(
            f"a task file that can be imported: {path}",
            answer.end(),
            REMEDY
            if "Traceback" in answer.errors
            else "Find the code that ends the program, such as os._exit().",
        )
    return tuple(answer.message["notes"])


def _too_long(path: Path | str, errors: str, within: float) -> UserError:
    line = re.search(rf'File "{re.escape(str(path))}", line (\d+) in (\S+)', errors)
    where = f": line {line[1]} (in {line[2]}) does not return" if line else ""
    return UserError(
        f"a task file that can be imported within {within:.0f} s: {path}",
        f"it did not finish{where}",
        "Remove code that waits or loops; if it needs that long, raise progress_timeout under [launch].",
    )
