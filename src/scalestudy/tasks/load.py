"""Finding a task: a built-in one by its name, a user's own by its file."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

from scalestudy.data.columns import Column
from scalestudy.study.catalog import TASKS, is_application, resolved_train
from scalestudy.study.objectives import metric_key, metric_term
from scalestudy.study.settings import ResolvedTrain, TrainSettings
from scalestudy.tasks.base import DataInfo, Task
from scalestudy.tasks.file import import_file
from scalestudy.tasks.loss_of import loss_of, of_data_alone
from scalestudy.tasks.metrics import by_order, metrics_of, with_ours
from scalestudy.tasks.named_metrics import named_metric
from scalestudy.tasks.outputs import (
    is_by_output,
    metrics_by_output,
    names_of,
    outputs_of,
    refuse_unknown,
    symbolic_outputs,
)
from scalestudy.tasks.task_losses import of_output, task_losses
from scalestudy.util.errors import UserError


def load_task(task: str, data: DataInfo, train: ResolvedTrain | None = None) -> Task:
    """Build the task named `task` for data of the given shape.

    Args:
        task: Name of a task ("unet", "cnn", or another package's), or the path of a Python file.
        data: What the task may know of its data.
        train: How it is to be trained, for models that ask; the task's own defaults when None.

    Raises:
        UserError: If the file does not define what a task needs, or cannot do what `train` asks for.
    """
    return task_of(module_of(task), data, train or resolved_train(task, TrainSettings()))


def module_of(task: str) -> ModuleType:
    """The module that defines a task.

    Raises:
        UserError: If a file cannot be imported.
    """
    if is_application(task):
        from scalestudy.tasks.applications import application_task

        return application_task(task)
    return TASKS.get(task) if task in TASKS else import_file(Path(task))


def task_of(module: ModuleType, data: DataInfo, train: ResolvedTrain) -> Task:
    """The task that a module defines by `model`, `loss`, `metrics`, and if it likes `better` and `callbacks`.

    `loss` and `metrics` may be functions of the data as well, for which classes or padding matter. `better`
    says which way metrics are better that are not Keras's own: `better = {"psnr": "higher"}`.
    """
    model, file = _model(module, data, train), str(module.__file__)
    outputs = names_of(model)
    if train.loss is not None or train.metrics is not None:
        refuse_other_outputs(model, data)
    own = _needed(module, "loss", "a loss, its name, or a function (targets, outputs) -> losses")
    of_samples, weights = (
        task_losses(own, module, model, outputs, data)
        if train.loss is None
        else (loss_of(train.loss, data, "train.loss"), [])
    )
    looks_at: dict[str, str] = {}
    if train.metrics is None:
        given = _needed(module, "metrics", 'metrics or their names, the quality first: ["accuracy"]')
        given = given(data) if of_data_alone(given) else given
        if is_by_output(given, outputs):
            refuse_unknown(given, outputs, "outputs, for metrics,", file)
            made = {name: with_ours(each, of_output(data, name), file) for name, each in given.items()}
            looks_at = outputs_of(made, by_order)
            given = metrics_by_output(made, by_order)
        found, senses = metrics_of(given, getattr(module, "better", {}), file, data)
    else:
        terms = [metric_term(text) for text in train.metrics]
        named = {metric_key(term): named_metric(term, data) for term in terms}
        found, senses = metrics_of(named, {}, "train.metrics")
    callbacks = getattr(module, "callbacks", [])
    callbacks = list(callbacks() if inspect.isfunction(callbacks) else callbacks)
    kept = _pretrained(module, model, train)
    return Task(
        model, of_samples, found, senses, callbacks, definitions_of(module), kept,
        data.class_names, outputs, looks_at, weights,
        hook(module, "training_losses", "model, loss, inputs, targets"),
        hook(module, "gradients", "gradients, variables"),
    )  # fmt: skip


def hook(module: ModuleType, name: str, arguments: str) -> Any:
    """A function that a task file may define, or None.

    Raises:
        UserError: If it takes other arguments than those that it is called with.
    """
    given = getattr(module, name, None)
    if given is None:
        return None
    count = arguments.count(",") + 1
    try:
        inspect.signature(given).bind(*[None] * count)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"`{name}` in {module.__file__}: a function ({arguments})",
            f"one that cannot be called so: {error}",
            f"Define it as `def {name}({arguments}):`.",
        ) from None
    return given


def refuse_other_outputs(model: keras.Model, data: DataInfo) -> None:
    """Refuse a model whose outputs are not probabilities of classes, which named losses and metrics take.

    Raises:
        UserError: If they are not.
    """
    fits = [data.classes] + ([1] if data.classes == 2 else [])
    axes = 4 if data.kind == "masks" else 2
    inputs = data.inputs or Column(data.input_shape, "float32", 0.0, 1.0)
    shapes = [tuple(output.shape) for output in keras.tree.flatten(symbolic_outputs(model, inputs))]
    if len(shapes) != 1 or len(shapes[0]) != axes or shapes[0][-1] not in fits:
        raise UserError(
            f"a model with one output of {' or '.join(map(str, fits))} probabilities for each "
            f"{'pixel' if data.kind == 'masks' else 'sample'}, which losses and metrics by name take",
            f"outputs of shape {', '.join(map(str, shapes))}",
            "Remove loss and metrics from [train], and define them in the task file.",
        )


def definitions_of(module: ModuleType) -> dict[str, Any]:
    """Classes and functions of a module by name: with them Keras loads a model that was made of them."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) or inspect.isfunction(value)
    }


def _needed(module: ModuleType, name: str, what: str) -> Any:
    if not hasattr(module, name):
        raise UserError(
            f"`{name}` in {module.__file__}: {what}",
            "no such name",
            f"Define `{name}` in the file; the README shows a complete task.",
        )
    return getattr(module, name)


def _required(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]


def _pretrained(module: ModuleType, model: keras.Model, train: ResolvedTrain) -> tuple[str, ...]:
    """Names of the model's layers that the task says to hold pretrained weights."""
    names = tuple(getattr(module, "pretrained", ()))
    missing = [name for name in names if name not in {layer.name for layer in model.layers}]
    if missing:
        raise UserError(
            f"names of layers of the model in `pretrained` of {module.__file__}",
            f"{missing[0]!r}, which is none of {', '.join(layer.name for layer in model.layers[:20])}",
            "Give that layer this name, or correct the list.",
        )
    if train.frozen_epochs and not names:
        raise UserError(
            "a task with pretrained layers for train.frozen_epochs",
            f"{module.__file__}, which names none",
            'Name them in the task file (`pretrained = ["backbone"]`), or remove frozen_epochs.',
        )
    return names


def _model(module: ModuleType, data: DataInfo, train: ResolvedTrain) -> keras.Model:
    function = _needed(
        module, "model", "a function of the data (input_shape, classes) that returns a Keras model"
    )
    asks = inspect.isfunction(function) and len(_required(function)) == 2
    if train.weights is not None and not asks:
        raise UserError(
            "a task whose model asks for weights, as model(data, train), for train.weights",
            f"{module.__file__}, whose model asks for none",
            "Remove train.weights, or have model(data, train) read train.weights.",
        )
    if inspect.isfunction(function):
        function = hook(module, "model", "data, train" if asks else "data")
    given = (data, train) if asks else (data,)
    model = function(*given) if inspect.isfunction(function) else function
    if not isinstance(model, keras.Model) or not model.built:
        raise UserError(
            f"a built Keras model from model(data) in {module.__file__}",
            f"{type(model).__name__}"
            + ("" if not isinstance(model, keras.Model) else " without an input shape"),
            "Return a keras.Model or a keras.Sequential that starts with keras.Input(data.input_shape).",
        )
    return model
