"""Load a task: a built-in one by its name, a user's by its file."""

import difflib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

from scalestudy.config.catalog import TASKS, is_application
from scalestudy.config.objectives import metric_key, metric_term
from scalestudy.config.settings import ResolvedTrain, TrainSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.data.samples import Column
from scalestudy.tasks.file import import_file
from scalestudy.tasks.ignored import (
    refuse_compiled,
    refuse_ignored_callbacks,
    refuse_ignored_names,
    refuse_own_steps,
)
from scalestudy.tasks.loss import (
    of_data_alone,
    refuse_unknown_loss,
    required,
    resolve_loss,
)
from scalestudy.tasks.metrics import (
    make_metric,
    metrics_of,
    refuse_unknown_metrics,
)
from scalestudy.tasks.row_metrics import with_rows
from scalestudy.tasks.task import DataInfo, Task, is_module, symbolic_outputs
from scalestudy.util.errors import UserError

ALSO_CALLED = {
    "model": (
        "net",
        "network",
        "get_model",
        "build_model",
        "make_model",
        "create_model",
    ),
    "loss": ("criterion", "loss_fn", "loss_function", "loss_func", "objective"),
    "metrics": ("metric", "measures"),
}
"""Required names of a task file, and names that users often write instead."""
DEFINED = {
    "model": "a function of the data (input_shape, classes) that returns a Keras model or an nn.Module",
    "loss": "a loss, its name, or a function (targets, outputs) -> losses",
    "metrics": 'metrics or their names, the quality first: ["accuracy"]',
}
HOOKS = {
    "training_losses": "model, loss, inputs, targets",
    "optimizer": "model, rate",
    "scheduler": "optimizer, steps, epochs",
}
"""Optional functions of a task file, and their arguments."""


def load_task(task: str, data: DataInfo, train: ResolvedTrain | None = None) -> Task:
    """Build a task for this data from its name ("unet", or one of another package) or its file.

    `train` is passed to models that take it; None means the task's defaults.

    Raises:
        UserError: If the file lacks a required name, or does not support a setting of `train`.
    """
    return task_of(
        module_of(task),
        data,
        train or task_defaults(task).complete_train(TrainSettings()),
    )


def module_of(task: str) -> ModuleType:
    """Return the module that defines a task.

    Raises:
        UserError: If its file cannot be imported, or is "": its code may not run.
    """
    if not task:
        raise UserError(
            "the task file of the model: its code builds the model, the loss and the metrics",
            "no file whose code may run",
            "Name the file with --task, if you trust its code.",
        )
    if is_application(task):
        from scalestudy.tasks.applications import application_task

        return application_task(task)
    if task in TASKS:
        return TASKS.get(task)
    return import_file(Path(task))


def refuse_incomplete(module: ModuleType, train: ResolvedTrain) -> None:
    """Check what needs no data: what a module defines, and its words for losses and metrics.

    Raises:
        UserError: As `task_of`.
    """
    file = str(module.__file__)
    _asks_for_train(module, train)
    refuse_ignored_names(module)
    if train.loss is None:
        refuse_unknown_loss(_needed(module, "loss"), file)
    if train.metrics is None:
        refuse_unknown_metrics(_needed(module, "metrics"), file)
    for name in HOOKS:
        hook(module, name)


def task_of(module: ModuleType, data: DataInfo, train: ResolvedTrain) -> Task:
    """Build the task that a module defines by `model`, `loss`, `metrics` and optional names such as `better`.

    `loss` and `metrics` may be functions of the data, if they depend on the classes or on padding. `better`
    is the better direction of metrics that are not Keras's: `better = {"psnr": "higher"}`.
    """
    model = _model(module, data, train)
    file = str(module.__file__)
    if train.loss is not None or train.metrics is not None:
        _refuse_other_outputs(model, data)
    if train.loss is None:
        loss = resolve_loss(model, _needed(module, "loss"), data, file)
    else:
        loss = resolve_loss(model, train.loss, data, "train.loss")
    if train.metrics is None:
        given = _needed(module, "metrics")
        if of_data_alone(given):
            given = given(data)
        metrics, senses = metrics_of(given, getattr(module, "better", {}), file, data)
    else:
        chosen = {}
        for text in train.metrics:
            term = metric_term(text)
            chosen[metric_key(term)] = make_metric(term, data)
        metrics, senses = metrics_of(chosen, {}, "train.metrics")
    # Wrapped here, where the shape of the outputs is known.
    metrics = with_rows(metrics, _outputs_of(model, data), data.ignore)
    callbacks = getattr(module, "callbacks", [])
    if inspect.isfunction(callbacks):
        callbacks = callbacks()
    callbacks = list(callbacks)
    refuse_ignored_callbacks(callbacks, file)
    return Task(
        model,
        loss,
        metrics,
        senses,
        callbacks,
        definitions_of(module),
        _pretrained(module, model, train),
        data.class_names,
        sees=_seen_by(metrics, model),
        **_hooks(module),
    )


def _seen_by(metrics: dict[str, keras.Metric], model: Any) -> dict[str, Any]:
    """Return, for metrics of a PyTorch module that need probabilities, the function that computes them.

    Functions of the task file see the outputs themselves.
    """
    if isinstance(model, keras.Model):
        return {}
    of_file = keras.metrics.MeanMetricWrapper
    # Exactly this class: metrics of Keras's own, such as MeanSquaredError, derive from it.
    names = [name for name, metric in metrics.items() if type(metric) is not of_file]
    return dict.fromkeys(names, model.probabilities)


def _hooks(module: ModuleType) -> dict[str, Any]:
    """Return the optional functions of a task file."""
    found = {name: hook(module, name) for name in HOOKS}
    backend = keras.backend.backend()
    for name in ("optimizer", "scheduler"):
        if found[name] is not None and backend != "torch":
            raise UserError(
                f"an engine that takes {name}(...) of {module.__file__}",
                f"Keras on {backend}",
                f"Take a strategy of PyTorch, or remove {name}(...) and choose an optimizer under [train].",
            )
    return found


def hook(module: ModuleType, name: str, arguments: str = "") -> Any:
    """Return an optional function of a task file, or None; `arguments` default to those of `HOOKS`.

    Raises:
        UserError: If it does not accept `arguments`.
    """
    function = getattr(module, name, None)
    arguments = arguments or HOOKS[name]
    if function is None:
        return None
    try:
        # Bound and not called, so that a mistake shows before data are there.
        inspect.signature(function).bind(*arguments.split(", "))
    except (TypeError, ValueError) as error:
        raise UserError(
            f"`{name}` in {module.__file__}: a function ({arguments})",
            f"one that cannot be called so: {error}",
            f"Define it as `def {name}({arguments}):`.",
        ) from None
    return function


def definitions_of(module: ModuleType) -> dict[str, Any]:
    """Return classes and functions of a module by name; Keras needs them to load a saved model."""
    definitions = {}
    for name, value in vars(module).items():
        if inspect.isclass(value) or inspect.isfunction(value):
            definitions[name] = value
    return definitions


def _refuse_other_outputs(model: keras.Model, data: DataInfo) -> None:
    """Refuse a model without one output of class probabilities, as losses and metrics by name require."""
    units = [data.classes]
    if data.classes == 2:
        # One output may be the probability of the second class: the first has the rest.
        units.append(1)
    axes, place = 2, "sample"
    if data.kind == "masks":
        axes, place = 4, "pixel"
    outputs = keras.tree.flatten(_outputs_of(model, data))
    shapes = [tuple(output.shape) for output in outputs]
    if len(shapes) != 1 or len(shapes[0]) != axes or shapes[0][-1] not in units:
        raise UserError(
            f"a model with one output of {' or '.join(map(str, units))} probabilities for each "
            f"{place}, as losses and metrics by name require",
            f"outputs of shape {', '.join(map(str, shapes))}",
            "Remove loss and metrics from [train], and define them in the task file.",
        )


def _outputs_of(model: Any, data: DataInfo) -> Any:
    return symbolic_outputs(
        model,
        data.inputs or Column(data.input_shape, "float32", 0.0, 1.0),
    )


def _needed(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        received = "no such name"
        action = f"Define `{name}` (`scalestudy docs reference/task-file`)."
        near = _near(module, name)
        if near is not None:
            received = f"`{near}` in its place"
            action = f"Rename `{near}` to `{name}`."
        raise UserError(
            f"`{name}` in {module.__file__}: {DEFINED[name]}",
            received,
            action,
        )
    return getattr(module, name)


def _near(module: ModuleType, name: str) -> str | None:
    """Return what a module defines in place of a required name, as far as names tell."""
    # Classes have names such as Model without being meant as `model`.
    own = [word for word, value in vars(module).items() if not inspect.isclass(value)]
    for word in own:
        if word.lower() in ALSO_CALLED[name]:
            return word
    return next(iter(difflib.get_close_matches(name, own, 1, 0.7)), None)


def _pretrained(
    module: ModuleType,
    model: keras.Model,
    train: ResolvedTrain,
) -> tuple[str, ...]:
    names = tuple(getattr(module, "pretrained", ()))
    layers = [layer.name for layer in model.layers]
    for name in names:
        if name not in layers:
            raise UserError(
                f"names of layers of the model in `pretrained` of {module.__file__}",
                f"{name!r}, which is not among {', '.join(layers[:20])}",
                "Give that layer this name, or correct the list.",
            )
    if train.frozen_epochs and not names:
        raise UserError(
            "a task with pretrained layers, for train.frozen_epochs",
            f"{module.__file__}, which names none",
            'Name them in the task file (`pretrained = ["backbone"]`), or remove frozen_epochs.',
        )
    return names


def _asks_for_train(module: ModuleType, train: ResolvedTrain) -> bool:
    """Whether `model` of a module also takes how it is trained."""
    model = _needed(module, "model")
    asks = inspect.isfunction(model) and len(required(model)) == 2
    if train.weights is not None and not asks:
        raise UserError(
            "a task whose model takes weights, as model(data, train), for train.weights",
            f"{module.__file__}, whose model takes none",
            "Remove train.weights, or use it in model(data, train).",
        )
    if inspect.isfunction(model):
        arguments = "data"
        if asks:
            arguments = "data, train"
        hook(module, "model", arguments)
    return asks


def _model(module: ModuleType, data: DataInfo, train: ResolvedTrain) -> keras.Model:
    asks = _asks_for_train(module, train)
    model = module.model
    if inspect.isfunction(model):
        if asks:
            model = model(data, train)
        else:
            model = model(data)
    # What the user's class says about training must not be ignored in silence.
    refuse_own_steps(model, module)
    refuse_compiled(model, module)
    # Keras models of the torch backend are modules, too, but Keras computes them.
    if is_module(model):
        from scalestudy.tasks.module import ModuleModel

        return ModuleModel(
            model,
            data.inputs or Column(data.input_shape, "float32", 0.0, 1.0),
            kind=data.kind,
            precision=train.precision,
            logits=bool(getattr(module, "logits", True)),
            file=str(module.__file__),
        )
    if not isinstance(model, keras.Model) or not model.built:
        if keras.backend.backend() == "torch" and not isinstance(model, keras.Model):
            received = type(model).__name__
            if isinstance(model, type):
                received = f"the class {model.__name__}"
            raise UserError(
                f"an nn.Module or a built Keras model from model(data) in {module.__file__}",
                received,
                "Return an instance of the class, such as Network(data.input_shape[-1], data.classes).",
            )
        received = type(model).__name__
        if isinstance(model, keras.Model):
            received += " without an input shape"
        raise UserError(
            f"a built Keras model from model(data) in {module.__file__}",
            received,
            "Return a keras.Model or a keras.Sequential that starts with keras.Input(data.input_shape). A "
            'module of PyTorch\'s needs the engine that computes it: engine = "torch" in the task file.',
        )
    return model
