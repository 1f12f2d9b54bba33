"""Files of Keras models: loading a saved model, and exporting it for other programs."""

import importlib.util
import os
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np

from scalestudy.config.catalog import is_ours
from scalestudy.engines.keras.private import all_layers
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo
from scalestudy.util.errors import UserError
from scalestudy.util.tracebacks import error_text

WEIGHTS = "model.weights.h5"
"""Name of the weights in a `.keras` file."""
ONNX = ("tf2onnx", "onnx")
"""Packages that Keras needs to write ONNX."""


def load_model(path: str, record: ModelRecord) -> keras.Model:
    """Load a trained `.keras` file. No code in the file runs, nor does it choose among the code of a task.

    The model of a task with code of its own is built by the task, and the file gives the weights alone. Only
    layers of Keras's own are described by the file (for task "", or a task of this package).

    Raises:
        UserError: If the model cannot be loaded.
    """
    if record.task and not is_ours(record.task):
        model = load_task(record.task, DataInfo.of_record(record), record.rebuilt).model
        load_weights(model, path, record.task, record.input_shape)
        return model
    try:
        # Safe mode refuses layers whose code is in the file.
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # of Keras or h5py, of many types
        action = "See that the file is whole."
        if not record.task:
            action = "If the model has code of its own that you trust, name its task file with --task."
        raise UserError(
            f"a Keras model that can be loaded: {path}", error_text(error), action
        ) from error


def load_weights(
    model: keras.Model, path: str, task: str, shape: Sequence[int]
) -> None:
    """Load the weights in a `.keras` file, and nothing else of it, into the model of a task.

    Args:
        model: A built model.
        path: The file.
        task: Its task, for messages.
        shape: Height, width and channels of its inputs, for messages.

    Raises:
        UserError: If the file cannot be read, or has the weights of another model.
    """
    try:
        stored = _stored_variables(path)
    except Exception as error:  # of zipfile or h5py, of many types
        action = "See that the file is whole."
        raise UserError(
            f"a Keras model that can be loaded: {path}", error_text(error), action
        ) from error
    # Keras leaves out what a file has besides the model's variables, such as further layers.
    own_form = any(map(_saves_otherwise, all_layers(model)))
    if stored > len(model.variables) and not own_form:
        raise other_model(path, task, shape)
    try:
        model.load_weights(path)
    except Exception as error:  # of Keras or h5py, of many types
        raise other_model(path, task, shape) from error


def _stored_variables(path: str) -> int:
    """Return the number of variables in a `.keras` file, without those of an optimizer."""
    import h5py

    names: list[str] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("optimizer/"):
            names.append(name)

    with (
        zipfile.ZipFile(path) as archive,
        archive.open(WEIGHTS) as file,
        h5py.File(file, "r") as weights,
    ):
        weights.visititems(visit)
    return len(names)


def _saves_otherwise(layer: keras.Layer) -> bool:
    """Whether a layer of a user's defines what is stored of it."""
    return not type(layer).save_own_variables.__module__.startswith("keras.")


def other_model(path: str, task: str, shape: Sequence[int]) -> UserError:
    """Return the error for weights that do not fit the model that the task builds now."""
    height, width, channels = shape
    return UserError(
        f"the weights of the model that {task} builds for inputs of {height} x {width} x {channels}",
        f"others in {path}",
        "Use data of the size and channels of its training, and do not change its task file.",
    )


def export_model(model: keras.Model, record: ModelRecord, out: str, form: str) -> None:
    """Export a trained model of inputs in [0, 1] atomically; see `Engine.export`.

    Raises:
        UserError: If it cannot be written in this form.
    """
    missing: list[str] = []
    if form == "onnx":
        missing = [name for name in ONNX if importlib.util.find_spec(name) is None]
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
    # Frameworks choose the form by the suffix, which must therefore stay.
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
