"""Import a user's task file, or query it in a separate process. Imports no framework unless the file does.

`python -m scalestudy.tasks.file FILE` prints what the file declares about its data, as JSON.
"""

import faulthandler
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from scalestudy.hardware.process import end_with
from scalestudy.util.errors import ScalestudyError, UserError
from scalestudy.util.tracebacks import located_error

ASKED_BY = "SCALESTUDY_ASKED_BY"
"""Environment variable: id of the process that queries the task file."""
WITHIN = "SCALESTUDY_ANSWER_WITHIN"
"""Environment variable: time limit in seconds for the task file's own code."""
FETCHED_WITHIN = 7200.0
"""Time limit in seconds for building a model, including the download of its weights."""
REMEDY = "Run it with python to see the whole traceback."
_DEVICE = 'Leave out .cuda() and .to("cuda"): the engine moves model and batches to the device of the run.'
_DTYPE = (
    "Leave out .double() and .half(): precision under [train] is the type of the module and of floating-point"
    " inputs. Integers of read(data) stay integers: convert them there, or in forward."
)
NOT_ITS_WORK = {
    "CUDA enabled": _DEVICE, "CUDA GPUs": _DEVICE, "NVIDIA driver": _DEVICE,
    "process group": "Leave out torch.distributed: the strategy joins the workers and sums their gradients.",
    "donated buffer": "Leave out torch.compile, also as a decorator of forward.",
    "bias type": _DTYPE, "must have the same dtype": _DTYPE,
}  # fmt: skip
"""Remedies for errors of PyTorch that contain these words: the task file does the engine's work."""


def remedy(error: BaseException, otherwise: str = REMEDY) -> str:
    """Return what to do about an error in a task file."""
    return next((text for words, text in NOT_ITS_WORK.items() if words in str(error)), otherwise)


def import_file(path: Path) -> ModuleType:
    """Import a user's task file.

    Raises:
        UserError: If the file cannot be imported. The message contains the original error.
    """
    spec = importlib.util.spec_from_file_location(f"scalestudy_task_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(
            f"a task file that can be imported: {path}", located_error(error), remedy(error)
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def answer(path: str, ask: Callable[[], dict[str, Any]]) -> NoReturn:
    """Print the result of `ask` or its error as the last line, and exit with code 0 or 2.

    This process is ended if the process that queries it ends. Exit handlers of the task file do not run, so
    that nothing is printed after the answer.
    """
    if ASKED_BY in os.environ:
        end_with(int(os.environ[ASKED_BY]))
    try:
        result = ask()
    except ScalestudyError as error:
        result = {"expected": error.expected, "received": error.received, "action": error.action}
    except (Exception, SystemExit) as error:
        result = {
            "expected": f"a task file that works: {path}",
            "received": located_error(error),
            "action": remedy(error),
        }
    sys.stdout.write(f"\n{json.dumps(result, default=os.fspath)}\n")
    sys.stdout.flush()
    os._exit(2 if "expected" in result else 0)


def limit_time(seconds: float | None = None) -> None:
    """Start the time limit of the task file's code; when it is exceeded, print the stacks and exit."""
    if WITHIN in os.environ:
        faulthandler.dump_traceback_later(seconds or float(os.environ[WITHIN]), exit=True)


def describe(path: str) -> dict[str, Any]:
    """Return {"data": source or None, "kind": kind or None}; errors of the file propagate."""
    limit_time()
    module = import_file(Path(path))
    data = getattr(module, "data", None)
    if not isinstance(data, str | os.PathLike | dict | None):
        raise UserError(
            f"a source of data, or a dictionary of keys of [data], as `data` in {path}",
            type(data).__name__,
            'Write data = "FOLDER". To read data by code of your own, define read(data).',
        )
    return {"data": data, "kind": getattr(module, "kind", None)}


if __name__ == "__main__":
    answer(sys.argv[1], lambda: describe(sys.argv[1]))
