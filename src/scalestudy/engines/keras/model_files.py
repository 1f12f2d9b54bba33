"""Files of Keras models: loading a saved model, and exporting it for other programs."""

import importlib.util
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import keras
import numpy as np

from scalestudy.config.catalog import TASKS, has_name, is_ours
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks.load import definitions_of
from scalestudy.tasks.task_file import import_file
from scalestudy.util.errors import UserError
from scalestudy.util.tracebacks import error_text


def load_model(path: str, task: str) -> keras.Model:
    """Load a `.keras` file with the classes and functions of its task file, if that exists.

    A built-in task needs no file. With `task` "", no code in the file or of a task runs.

    Raises:
        UserError: If the model cannot be loaded.
    """
    definitions = {}
    if not is_ours(task):
        if task in TASKS:
            definitions = definitions_of(TASKS.get(task))
        elif Path(task).is_file():
            definitions = definitions_of(import_file(Path(task)))
    try:
        # Lambda layers are code in the file itself: the user's own, if a file of theirs defines the task.
        safe = has_name(task) or not definitions
        return keras.saving.load_model(path, custom_objects=definitions, compile=False, safe_mode=safe)
    except Exception as error:  # of Keras, h5py or the user's classes
        action = (
            "If the model has code of its own that you trust, name its task file with --task."
            if not task
            else f"Its task file {task} is not there: put it back, if the model has layers of its own."
            if not has_name(task) and not Path(task).is_file()
            else "See that the file is whole, and that its task file is as it was when it was trained."
        )
        raise UserError(f"a Keras model that can be loaded: {path}", error_text(error), action) from error


def other_model(path: str, task: str, shape: Sequence[int]) -> UserError:
    """Return the error for weights that do not fit the model that the task builds now."""
    height, width, channels = shape
    return UserError(
        f"the weights of the model that {task} builds for inputs of {height} x {width} x {channels}",
        f"others in {path}",
        "Use data of the size and channels of its training, and do not change its task file.",
    )


ONNX = ("tf2onnx", "onnx")
"""Packages that Keras needs to write ONNX."""


def export_model(model: keras.Model, record: ModelRecord, out: str, form: str) -> None:
    """Export a trained model of inputs in [0, 1] atomically; see `Engine.export`.

    Raises:
        UserError: If it cannot be written in this form.
    """
    missing = [name for name in ONNX if form == "onnx" and importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            "the packages that write ONNX",
            f"no {' and no '.join(missing)} in this environment",
            "Install them beside Scalestudy: pip install 'scalestudy[onnx]'; or name a folder with --out.",
        )
    whole = with_scaling(model, record)
    with write_whole(out, form) as half:
        if form == "keras":
            whole.save(half)
        elif form == "savedmodel":
            whole.export(str(half), format="tf_saved_model", verbose=False)
        else:
            given = whole.inputs[0]
            # Keras cannot export a model that was never called.
            whole(np.zeros((1, *given.shape[1:]), given.dtype))
            whole.export(str(half), format="onnx", verbose=False)


@contextmanager
def write_whole(out: str, form: str) -> Iterator[Path]:
    """Yield a temporary path for a model, and move it to `out` if the block succeeds.

    Raises:
        UserError: If the block raises an error other than UserError or OSError.
    """
    path = Path(out)
    half = path.with_name(f".half.{path.name}")
    _remove(half)
    try:
        yield half
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        os.replace(half, path)
    except (UserError, OSError):
        raise
    except Exception as error:  # of Keras or a converter, of many types
        raise UserError(
            f"a model that can be written as {form}",
            error_text(error),
            "Choose another format by the ending of --out; a custom layer may have no counterpart there.",
        ) from error
    finally:
        _remove(half)


def with_scaling(model: keras.Model, record: ModelRecord) -> keras.Model:
    """Return the model preceded by a layer that scales stored inputs to [0, 1]."""
    inputs = keras.Input(record.input_shape, dtype=record.dtype, name="image")
    floats = keras.layers.Rescaling(record.scale, dtype="float32", name="scale")(inputs)
    return keras.Model(inputs, model(floats), name=model.name)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
