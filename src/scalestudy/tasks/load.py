"""Finding a task: a built-in one by its name, a user's own by its file."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

from scalestudy.errors import UserError
from scalestudy.study.catalog import TASKS
from scalestudy.study.objectives import metric_key, metric_term
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.file import import_file
from scalestudy.tasks.loss_of import loss_of, of_data_alone
from scalestudy.tasks.metrics import metrics_of
from scalestudy.tasks.named_metrics import named_metric


def load_task(
    task: str, data: DataInfo, *, loss: str | None = None, metrics: Sequence[str] | None = None
) -> Task:
    """Build the task named `task` for data of the given shape.

    Args:
        task: Name of a task ("unet", "cnn", or another package's), or the path of a Python file.
        data: What the task may know of its data.
        loss: What a study asks for instead of the task's own loss, as "0.5*bce + dice".
        metrics: What it asks for instead of the task's own metrics, the quality first, as ["dice", "iou"].

    Raises:
        UserError: If the file does not define what a task needs, or the loss or a metric does not fit.
    """
    return task_of(TASKS.get(task) if task in TASKS else import_file(Path(task)), data, loss, metrics)


def task_of(
    module: ModuleType, data: DataInfo, loss: str | None = None, metrics: Sequence[str] | None = None
) -> Task:
    """The task that a module defines by `model`, `loss`, `metrics`, and if it likes `better` and `callbacks`.

    `loss` and `metrics` may be functions of the data as well, for which classes or padding matter. `better`
    says which way metrics are better that are not Keras's own: `better = {"psnr": "higher"}`.
    """
    model, file = _model(module, data), str(module.__file__)
    if loss is not None or metrics is not None:
        refuse_other_outputs(model, data)
    own = _needed(module, "loss", "a loss, its name, or a function (targets, outputs) -> losses")
    of_samples = loss_of(own, data, file) if loss is None else loss_of(loss, data, "train.loss")
    if metrics is None:
        given = _needed(module, "metrics", 'metrics or their names, the quality first: ["accuracy"]')
        given = given(data) if of_data_alone(given) else given
        found, senses = metrics_of(given, getattr(module, "better", {}), file, data)
    else:
        terms = [metric_term(text) for text in metrics]
        named = {metric_key(term): named_metric(term, data) for term in terms}
        found, senses = metrics_of(named, {}, "train.metrics")
    callbacks = getattr(module, "callbacks", [])
    callbacks = list(callbacks() if inspect.isfunction(callbacks) else callbacks)
    defined = {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) or inspect.isfunction(value)
    }
    return Task(model, of_samples, found, senses, callbacks, defined, data.class_names)


def refuse_other_outputs(model: keras.Model, data: DataInfo) -> None:
    """Refuse a model whose outputs are not probabilities of classes, which named losses and metrics take.

    Raises:
        UserError: If they are not.
    """
    fits = [data.classes] + ([1] if data.classes == 2 else [])
    axes = 4 if data.kind == "masks" else 2
    shapes = [tuple(output.shape) for output in model.outputs]
    if len(shapes) != 1 or len(shapes[0]) != axes or shapes[0][-1] not in fits:
        raise UserError(
            f"a model with one output of {' or '.join(map(str, fits))} probabilities for each "
            f"{'pixel' if data.kind == 'masks' else 'sample'}, which losses and metrics by name take",
            f"outputs of shape {', '.join(map(str, shapes))}",
            "Remove loss and metrics from [train], and define them in the task file.",
        )


def _needed(module: ModuleType, name: str, what: str) -> Any:
    if not hasattr(module, name):
        raise UserError(
            f"`{name}` in {module.__file__}: {what}",
            "no such name",
            f"Define `{name}` in the file; the README shows a complete task.",
        )
    return getattr(module, name)


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
