"""Finding a task: a built-in one by its name, a user's own by its file."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

from scalestudy.errors import UserError
from scalestudy.study.catalog import TASKS
from scalestudy.tasks.base import DataInfo, Task, mean_over_rest
from scalestudy.tasks.file import import_file
from scalestudy.tasks.metrics import metrics_of


def load_task(task: str, data: DataInfo) -> Task:
    """Build the task named `task` for data of the given shape.

    Args:
        task: Name of a task ("unet", "cnn", or another package's), or the path of a Python file.
        data: What the task may know of its data.

    Raises:
        UserError: If the file does not define what a task needs.
    """
    return task_of(TASKS.get(task) if task in TASKS else import_file(Path(task)), data)


def task_of(module: ModuleType, data: DataInfo) -> Task:
    """The task that a module defines by `model`, `loss`, `metrics`, and if it likes `better` and `callbacks`.

    `loss` and `metrics` may be functions of the data as well, for which classes or padding matter. `better`
    says which way metrics are better that are not Keras's own: `better = {"psnr": "higher"}`.
    """
    model = _model(module, data)
    loss = _needed(module, "loss", "a Keras loss, its name, or a function (targets, outputs) -> losses")
    metrics = _needed(module, "metrics", 'Keras metrics or their names, the quality first: ["accuracy"]')
    found, senses = metrics_of(_for_data(metrics, data), getattr(module, "better", {}), module.__file__)
    callbacks = getattr(module, "callbacks", [])
    callbacks = list(callbacks() if inspect.isfunction(callbacks) else callbacks)
    defined = {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) or inspect.isfunction(value)
    }
    return Task(model, _loss(_for_data(loss, data)), found, senses, callbacks, defined)


def _needed(module: ModuleType, name: str, what: str) -> Any:
    if not hasattr(module, name):
        raise UserError(
            f"`{name}` in {module.__file__}: {what}",
            "no such name",
            f"Define `{name}` in the file; the README shows a complete task.",
        )
    return getattr(module, name)


def _for_data(given: Any, data: DataInfo) -> Any:
    """What a function of the data alone returns; anything else as it is."""
    if not inspect.isfunction(given):
        return given
    needed = [each for each in inspect.signature(given).parameters.values() if each.default is each.empty]
    return given(data) if len(needed) == 1 else given


def _model(module: ModuleType, data: DataInfo) -> keras.Model:
    function = _needed(
        module, "model", "a function of the data (input_shape, classes) that returns a Keras model"
    )
    model = function(data) if inspect.isfunction(function) else function
    if not isinstance(model, keras.Model) or not model.built:
        raise UserError(
            f"a built Keras model from model(data) in {module.__file__}",
            f"{type(model).__name__}"
            + ("" if not isinstance(model, keras.Model) else " without an input shape"),
            "Return a keras.Model or a keras.Sequential that starts with keras.Input(data.input_shape).",
        )
    return model


def _loss(given: Any) -> Callable[[Any, Any], Any]:
    loss = keras.losses.get(given) if isinstance(given, str) else given
    if isinstance(loss, type) and issubclass(loss, keras.Loss):
        loss = loss()
    # `call` gives the losses before Keras takes their mean, which would forget how many there were.
    each = loss.call if isinstance(loss, keras.Loss) else loss
    return lambda targets, outputs: mean_over_rest(each(targets, outputs))
