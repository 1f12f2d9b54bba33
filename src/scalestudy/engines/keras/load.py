"""Loading a model that a run has saved."""

from collections.abc import Sequence
from pathlib import Path

import keras

from scalestudy.study.catalog import TASKS, has_name, is_ours
from scalestudy.tasks.file import import_file
from scalestudy.tasks.load import definitions_of
from scalestudy.util.errors import UserError


def load_model(path: str, task: str) -> keras.Model:
    """Load a `.keras` file, with the classes and functions of its task's file where that is here.

    Args:
        path: The file.
        task: Name of a task, or path of its file. A built-in one needs none; of an exported model the file
            may be missing, if all its layers are Keras's own.

    Raises:
        UserError: If it cannot be loaded.
    """
    definitions = {}
    if not is_ours(task):
        if task in TASKS:
            definitions = definitions_of(TASKS.get(task))
        elif Path(task).is_file():
            definitions = definitions_of(import_file(Path(task)))
    try:
        # Lambda layers of the user's own task are the user's own code, as is the task itself.
        return keras.saving.load_model(
            path, custom_objects=definitions, compile=False, safe_mode=not definitions
        )
    except Exception as error:  # of Keras, of h5py, or of the user's own classes
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        missing = not has_name(task) and not Path(task).is_file()
        action = (
            f"Its task file {task} is not there: put it back, if the model has layers of its own."
            if missing
            else "See that the file is whole, and that its task file is as it was when it was trained."
        )
        raise UserError(
            f"a Keras model that can be loaded: {path}", f"{type(error).__name__}: {first[:300]}", action
        ) from error


def other_model(path: str, task: str, shape: Sequence[int]) -> UserError:
    """The error where a file's weights do not fit the model that its task builds now."""
    height, width, channels = shape
    return UserError(
        f"the weights of the model that {task} builds for inputs of {height} x {width} x {channels}",
        f"others in {path}",
        "Name data of the size and channels that it was trained on, and leave its task file as it was.",
    )
