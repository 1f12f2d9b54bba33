"""Import a user's task file, and explain its errors. Only the file may import a framework."""

import faulthandler
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from scalestudy.tasks.out_of_memory import WORDS
from scalestudy.util.child_process import WITHIN
from scalestudy.util.errors import UserError
from scalestudy.util.tracebacks import locate_error

FETCHED_WITHIN = 7200.0
"""Time limit in seconds for building a model, including the download of its weights."""
REMEDY = "Run it with python to see the whole traceback."
_DEVICE = 'Leave out .cuda() and .to("cuda"): the engine moves model and batches to the device of the run.'
_DTYPE = (
    "Leave out .double() and .half(): precision under [train] is the type of the module and of floating-point"
    " inputs. Integers of read(data) stay integers: convert them there, or in forward."
)
_MEMORY = (
    "Not even one or two samples fit, so a smaller batch_size, or accumulate, under [train] would not be"
    ' enough: set precision = "mixed_bfloat16", make the model or its inputs smaller, or free the device'
    " (nvidia-smi lists the programs that use it)."
)
REMEDIES = {
    "CUDA enabled": _DEVICE,
    "CUDA GPUs": _DEVICE,
    "NVIDIA driver": _DEVICE,
    "process group": "Leave out torch.distributed: the strategy joins the workers and sums their gradients.",
    "donated buffer": "Leave out torch.compile, also as a decorator of forward.",
    "bias type": _DTYPE,
    "must have the same dtype": _DTYPE,
} | dict.fromkeys(WORDS, _MEMORY)
"""What to do about errors that contain these words."""


def remedy_for(error: BaseException, otherwise: str = REMEDY) -> str:
    """Return what to do about an error in a task file."""
    for words, text in REMEDIES.items():
        if words in str(error):
            return text
    return otherwise


def import_file(path: Path) -> ModuleType:
    """Import a user's task file.

    Raises:
        UserError: If the file cannot be imported. The message contains the original error.
    """
    spec = importlib.util.spec_from_file_location(f"scalestudy_task_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Classes of the file are looked up by their module's name, as by dataclasses and pickle.
    sys.modules[spec.name] = module
    # So that the file can import what lies beside it, as when it is run with python.
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(
            f"a task file that can be imported: {path}",
            locate_error(error),
            remedy_for(error),
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def limit_time(seconds: float | None = None) -> None:
    """Start the time limit of the task file's code; when it is exceeded, print the stacks and exit."""
    # By faulthandler, whose thread also runs while native code holds the interpreter.
    if WITHIN in os.environ:
        faulthandler.dump_traceback_later(
            seconds or float(os.environ[WITHIN]),
            exit=True,
        )
