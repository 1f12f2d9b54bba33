"""Query the data and the model of a user's task file in a separate process."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.launch.environments import python_of, variables_of
from scalestudy.study.catalog import read_task_file
from scalestudy.study.engines import any_installed
from scalestudy.study.settings import LaunchSettings
from scalestudy.tasks.file import ASKED_BY, FETCHED_WITHIN, REMEDY, WITHIN
from scalestudy.util import modules
from scalestudy.util.errors import UserError

WANTED = ("data", "kind")
PROGRESS_TIMEOUT = LaunchSettings().progress_timeout
FRAMEWORK_WITHIN = 600.0
"""Additional seconds for Python and the framework to start before the file's own code runs."""
TIMEOUT = "Timeout ("
"""Text that faulthandler writes before the stacks of a process that exceeded its time."""


def describe_task(path: Path | str, within: float = PROGRESS_TIMEOUT) -> dict[str, Any]:
    """Describe a task file: {"data": source or None, "kind": kind or None, "reads": true or false}.

    "kind" is "masks", "classes" or "custom"; "reads" is whether the file has a function `read`.

    Literals in the file (`data = "folder"`) are read without running it. The file is run, in a separate
    process, only for values that it computes; without a framework, as on a login node, these stay unknown.

    Args:
        path: The task file.
        within: Time limit of the file's own code in seconds.

    Raises:
        UserError: If the file is not valid Python, or must be imported and fails or exceeds the time limit.
    """
    read = read_task_file(Path(path))
    if read.unknown & set(WANTED) and any_installed():
        described = _ask(modules.DESCRIBE_TASK, path, within=within)
        data = described["data"]
        if "data" in read.unknown and isinstance(data, dict) and data.keys() - {"source"}:
            raise UserError(
                "only literals in a dictionary `data`, which is read without running the file",
                f"a computed value in {path}",
                "Assign the source alone to data, and write the other keys under [data] of the study file.",
            )
        return {"reads": read.reads} | described
    return {"reads": read.reads} | {name: read.values.get(name) for name in WANTED}


class BuiltModel(NamedTuple):
    """The result of building a task's model and trying it.

    Attributes:
        parameters: Number of parameters of the model.
        notes: Likely mistakes in it.
    """

    parameters: int
    notes: tuple[str, ...]


def build_task(
    path: Path | str, info: dict[str, Any], within: float = PROGRESS_TIMEOUT, environment: str | None = None,
) -> BuiltModel:  # fmt: skip
    """Build the task's model once, download missing pretrained weights, and try it on two samples.

    Args:
        path: The task file.
        info: {"prepared": folder of the prepared data set}. Without it nothing is built or downloaded, and
            only what needs no data is checked.
        within: Time limit for importing the file in seconds.
        environment: Folder of the virtual environment to build it in; None for that of this process.

    Raises:
        UserError: If the model cannot be built or does not fit its data.
    """
    answer = _ask(
        modules.BUILD_TASK, path, json.dumps(info), within=within, after=FETCHED_WITHIN,
        environment=environment,
    )  # fmt: skip
    return BuiltModel(int(answer["parameters"]), tuple(answer["notes"]))


def _ask(
    module: str,
    path: Path | str,
    *more: str,
    within: float,
    after: float = 0.0,
    environment: str | None = None,
) -> dict[str, Any]:
    python = python_of(environment) if environment else sys.executable
    variables = variables_of(environment, os.environ) if environment else os.environ
    code, output, errors = _output([python, "-P", "-m", module, str(path), *more], variables, within, after)
    try:
        answer: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError) as error:
        if TIMEOUT in errors:
            raise _too_long(path, errors, within) from None
        raise UserError(
            f"a task file that can be imported: {path}",
            _end(code, errors),
            REMEDY if "Traceback" in errors else "Find the code that ends the program, such as os._exit().",
        ) from error
    if "expected" in answer:
        raise UserError(answer["expected"], answer["received"], answer["action"])
    return answer


def _output(
    command: Sequence[str], variables: Mapping[str, str], within: float, after: float
) -> tuple[int, str, str]:
    """Run a command; return exit code, output and errors. It ends with this process or at its time limit."""
    variables = {**variables, ASKED_BY: str(os.getpid()), WITHIN: str(within)}
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=within + after + FRAMEWORK_WITHIN, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL, "", TIMEOUT
    return done.returncode, done.stdout, done.stderr


def _too_long(path: Path | str, errors: str, within: float) -> UserError:
    line = re.search(rf'File "{re.escape(str(path))}", line (\d+) in (\S+)', errors)
    where = f": line {line[1]} (in {line[2]}) does not return" if line else ""
    return UserError(
        f"a task file that can be imported within {within:.0f} s: {path}",
        f"it did not finish{where}",
        "Remove code that waits or loops; if it needs that long, raise progress_timeout under [launch].",
    )


def _end(code: int, errors: str) -> str:
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    last = (errors.strip().splitlines() or ["no output"])[-1]
    return f"its process ended with exit code {code} and no answer: {last}"
