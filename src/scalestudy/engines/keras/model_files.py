"""Loading a trained model from its file, without running code of the file."""

import zipfile
from collections.abc import Sequence
from typing import Any

import keras

from scalestudy.config.catalog import is_ours
from scalestudy.engines.keras.private import all_layers
from scalestudy.store.model_record import ModelRecord
from scalestudy.tasks.load import load_task
from scalestudy.tasks.task import DataInfo
from scalestudy.util.errors import UserError
from scalestudy.util.tracebacks import error_text

WEIGHTS = "model.weights.h5"
"""Name of the weights in a `.keras` file."""


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
            f"a Keras model that can be loaded: {path}",
            error_text(error),
            action,
        ) from error


def load_weights(
    model: keras.Model,
    path: str,
    task: str,
    shape: Sequence[int],
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
            f"a Keras model that can be loaded: {path}",
            error_text(error),
            action,
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
