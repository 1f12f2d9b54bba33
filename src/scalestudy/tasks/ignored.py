"""What `fit` of Keras honours and a task does not: refused, with what to write instead."""

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import keras

from scalestudy.util.errors import UserError
from scalestudy.util.syntax import parse

STEPS = {
    "train_step": "training_losses(model, loss, inputs, targets)",
    "compute_loss": "`loss`, or training_losses(model, loss, inputs, targets)",
    "test_step": "`loss` and `metrics`, by which samples are evaluated",
    "compute_metrics": "`metrics`",
    "make_train_function": "training_losses(model, loss, inputs, targets)",
    "make_test_function": "`loss` and `metrics`, by which samples are evaluated",
    "training_step": "training_losses(model, loss, inputs, targets)",
    "validation_step": "`loss` and `metrics`, by which samples are evaluated",
    "configure_optimizers": "optimizer(model, rate), and scheduler(optimizer, steps, epochs)",
}
"""Methods of Keras models and of Lightning modules, and what to define in the task file instead."""
TRAINING = ("train_step", "compute_loss", "make_train_function", "training_step")
"""Methods that `training_losses` replaces."""
ARGUMENTS = {
    "class_weight": "class_weights = [1.0, 5.0] under [train], a number for each class",
    "class_weights": "class_weights = [1.0, 5.0] under [train], a number for each class",
    "sample_weight": "a loss that multiplies by a weight, which read(data) gives as one of several targets",
}
"""Arguments of `fit` that a task file may define, and what to write instead."""
NEVER_CALLED = (
    "on_batch_begin",
    "on_train_batch_begin",
    "on_test_begin",
    "on_test_end",
    "on_test_batch_begin",
    "on_test_batch_end",
    "on_predict_begin",
    "on_predict_end",
    "on_predict_batch_begin",
    "on_predict_batch_end",
)
"""Methods of callbacks that the training does not call."""


def refuse_ignored_names(module: ModuleType) -> None:
    """Refuse names of a task file that `fit` would take as arguments, and that have no effect.

    Raises:
        UserError: Names what to write instead.
    """
    for name, instead in ARGUMENTS.items():
        if hasattr(module, name) and not _is_used(module, name):
            raise UserError(
                f"names of a task file that have an effect: {module.__file__}",
                f"`{name}`, which `fit` would take",
                f"Remove it, and write {instead}.",
            )
    optimizer = getattr(module, "optimizer", None)
    if optimizer is not None and not callable(optimizer):
        received = type(optimizer).__name__
        if isinstance(optimizer, str):
            received = f"optimizer = {optimizer!r}"
        raise UserError(
            f"an optimizer by its name under [train], not in {module.__file__}",
            received,
            'Remove it, and write optimizer = "adam" and learning_rate under [train]; a PyTorch task may '
            "define optimizer(model, rate).",
        )


def _is_used(module: ModuleType, name: str) -> bool:
    """Whether the file reads a name, but for an argument of `fit`: a loss of its own may weight classes."""
    tree = parse(Path(str(module.__file__)), "a task file")
    of_fit: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "fit":
            of_fit.update(ast.walk(node))
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=read, ctx=ast.Load()) if read == name:
                if node not in of_fit:
                    return True
    return False


def refuse_own_steps(model: Any, module: ModuleType) -> None:
    """Refuse a model that overrides how it is trained or evaluated.

    Raises:
        UserError: Names the method, and what to define in the task file.
    """
    replaced = TRAINING if hasattr(module, "training_losses") else ()
    for name, instead in STEPS.items():
        owner = _owner(type(model), name)
        if owner is not None and name not in replaced:
            raise UserError(
                "a model whose outputs alone decide its loss and metrics, since workers share each step",
                f"{owner.__name__}.{name} in {module.__file__}, which would never be called",
                f"In the task file, define {instead}; and remove the method.",
            )


def _owner(kind: type, name: str) -> type | None:
    """Return the user's class that defines a method; None if only a framework does."""
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        # What comes after a class of a framework does not override its method.
        if package in ("keras", "torch"):
            return None
        if name in vars(base):
            return base
    return None


def refuse_compiled(model: Any, module: ModuleType) -> None:
    """Refuse a model that the task file compiles. Models that come compiled, as pretrained ones, are not.

    Raises:
        UserError: Names the line, and where to write what it says.
    """
    if not isinstance(model, keras.Model) or not model.compiled:
        return
    for node in ast.walk(parse(Path(str(module.__file__)), "a task file")):
        match node:
            # They compile something else than a model of Keras.
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re" | "torch"))):
                continue
            case ast.Call(func=ast.Attribute(attr="compile")):
                raise UserError(
                    f"a model that is not compiled: the study says how it is trained ({module.__file__})",
                    f"compile(…) in line {node.lineno}, whose optimizer, loss and metrics have no effect",
                    'Remove the call, and write optimizer = "adam" and learning_rate under [train], and '
                    "`loss` and `metrics` in the task file.",
                )


def refuse_ignored_callbacks(callbacks: list[Any], file: str) -> None:
    """Refuse callbacks with methods of their own that the training never calls.

    Raises:
        UserError: Names the class and the method.
    """
    for callback in callbacks:
        name = type(callback).__name__
        if isinstance(callback, keras.callbacks.SwapEMAWeights):
            raise UserError(
                f"callbacks in {file} that have an effect",
                f"{name}, which finds no averages to swap",
                "Remove it: a run keeps no averages of its weights.",
            )
        for hook in NEVER_CALLED:
            method = getattr(callback, hook, None)
            # Keras's base class defines every one of them, empty: only those of other modules do something.
            if getattr(method, "__module__", "keras").partition(".")[0] != "keras":
                raise UserError(
                    f"callbacks in {file} with methods that are called: on_train_begin, on_epoch_begin, "
                    "on_train_batch_end, on_epoch_end, on_train_end",
                    f"{name}.{hook}, which is never called",
                    "Move its code into one of these, or into `training_losses` or a metric.",
                )
