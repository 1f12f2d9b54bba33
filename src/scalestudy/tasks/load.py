"""Finding a task: a built-in one by its name, a user's own by its file."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

from scalestudy.errors import UserError
from scalestudy.study.applications import is_application
from scalestudy.study.catalog import TASKS, resolved_train
from scalestudy.study.settings import ResolvedTrain, TrainSettings
from scalestudy.tasks.base import DataInfo, Task, mean_over_rest
from scalestudy.tasks.file import import_file
from scalestudy.tasks.metrics import by_order, metrics_of
from scalestudy.tasks.outputs import (
    is_by_output,
    metrics_by_output,
    names_of,
    outputs_of,
    refuse_unknown,
    summed,
)
from scalestudy.tasks.own_weights import build_loss, weights_of


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
    model, file = _model(module, data, train), module.__file__
    outputs = names_of(model)
    loss = _for_data(
        _needed(module, "loss", "a Keras loss, its name, or a function (targets, outputs) -> losses"), data
    )
    metrics = _for_data(
        _needed(module, "metrics", 'Keras metrics or their names, the quality first: ["accuracy"]'), data
    )
    looks_at: dict[str, str] = {}
    if is_by_output(metrics, outputs):
        refuse_unknown(metrics, outputs, "outputs, for metrics,", file)
        metrics, looks_at = metrics_by_output(metrics, by_order), outputs_of(metrics, by_order)
    found, senses = metrics_of(metrics, getattr(module, "better", {}), file)
    callbacks = getattr(module, "callbacks", [])
    callbacks = list(callbacks() if inspect.isfunction(callbacks) else callbacks)
    defined = {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) or inspect.isfunction(value)
    }
    of_samples, weights = _losses(loss, module, model, outputs, data)
    return Task(
        model, of_samples, found, senses, callbacks, defined,
        _pretrained(module, model, train), outputs, looks_at, weights,
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


def _losses(
    given: Any, module: ModuleType, model: keras.Model, outputs: list[str], data: DataInfo
) -> tuple[Callable[[Any, Any], Any], list[keras.Variable]]:
    """(targets, outputs) -> losses of shape [B], and the variables of the losses."""
    file = module.__file__
    if not isinstance(given, Mapping):
        loss = _made(given)
        build_loss(loss, model, data)
        return _of_samples(loss), weights_of([loss], file)
    refuse_unknown(given, outputs, "outputs, for losses,", file)
    if isinstance(data.targets, Mapping):
        refuse_unknown(given, data.targets, "targets, for losses,", file)
    by_output = getattr(module, "loss_weights", {})
    refuse_unknown(by_output, given, "losses, for loss_weights,", file)
    made = {name: _made(_for_data(each, data)) for name, each in given.items()}
    losses = {name: _of_samples(each) for name, each in made.items()}
    return summed(losses, by_output, outputs), weights_of(made.values(), file)


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
    return given(data) if len(_required(given)) == 1 else given


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


def _made(given: Any) -> Any:
    """A loss from its name or its class."""
    loss = keras.losses.get(given) if isinstance(given, str) else given
    return loss() if isinstance(loss, type) and issubclass(loss, keras.Loss | keras.layers.Layer) else loss


def _of_samples(loss: Any) -> Callable[[Any, Any], Any]:
    # `call` gives the losses before Keras takes their mean, which would forget how many there were.
    each = loss.call if isinstance(loss, keras.Loss) else loss
    if not _is_pairwise(loss):
        return lambda targets, outputs: mean_over_rest(each(targets, outputs))
    return lambda targets, outputs: mean_over_rest(each(_like(targets, outputs), outputs))


def _is_pairwise(loss: Any) -> bool:
    """Whether it is one of Keras's losses that compare numbers of the same shape."""
    name = getattr(loss, "__name__", type(loss).__name__)
    return getattr(keras.losses, name, None) in (loss, type(loss)) and not name.lower().startswith("sparse")


def _like(targets: Any, outputs: Any) -> Any:
    """Targets [B, ...] for outputs [B, ..., 1] as [B, ..., 1]: Keras would take means over samples."""
    one = len(outputs.shape) == len(targets.shape) + 1 and outputs.shape[-1] == 1
    return keras.ops.expand_dims(targets, -1) if one else targets
