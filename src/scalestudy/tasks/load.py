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
    """The task that a module defines by `model`, `loss`, `metrics` and, if it likes, `callbacks`.

    `loss` and `metrics` may be functions of the data as well, for which classes or padding matter.
    """
    model = _model(module, data)
    loss = _needed(module, "loss", "a Keras loss, its name, or a function (targets, outputs) -> losses")
    metrics = _needed(module, "metrics", 'Keras metrics or their names, the quality first: ["accuracy"]')
    loss, metrics = _loss(_for_data(loss, data)), _metrics(_for_data(metrics, data))
    callbacks = getattr(module, "callbacks", [])
    return Task(model, loss, metrics, list(callbacks() if inspect.isfunction(callbacks) else callbacks))


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


def _metrics(given: Any) -> dict[str, keras.Metric]:
    named = given if isinstance(given, dict) else _by_order(given)
    metrics = {}
    for name, each in named.items():
        metric = _metric(each)
        metrics[name] = metric
    if not metrics:
        raise UserError(
            "at least one metric, the quality first",
            "none",
            'Name one in the task file: metrics = ["accuracy"].',
        )
    return metrics


def _by_order(given: Any) -> dict[Any, Any]:
    each = given if isinstance(given, list | tuple) else [given]
    return {getattr(one, "name", None) or getattr(one, "__name__", None) or str(one): one for one in each}


def _metric(given: Any) -> keras.Metric:
    if isinstance(given, keras.Metric):
        return given
    if given == "accuracy":
        return keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    if isinstance(given, type) and issubclass(given, keras.Metric):
        return given()
    found = keras.metrics.get(given) if isinstance(given, str) else given
    if isinstance(found, keras.Metric):
        return found
    return keras.metrics.MeanMetricWrapper(found, name=getattr(found, "__name__", "metric"))
