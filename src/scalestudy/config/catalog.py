"""The tasks with a name."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

from scalestudy.util.errors import UserError
from scalestudy.util.registry import Registry
from scalestudy.util.syntax import bound_names, parse_or_none

PREFIX = "keras:"
"""Prefix of a Keras model's name as a task: "keras:EfficientNetV2B0"."""
TASKS: Registry[ModuleType] = Registry("scalestudy.tasks")
"""Task files with a name: modules in the same form as a user's own file."""
APPLICATIONS: Registry[ModuleType] = Registry("scalestudy.applications")
"""Modules that make a task from a model, by the name of its package."""


def is_application(task: str) -> bool:
    """Whether a task is a model of `keras.applications`."""
    return task.startswith(PREFIX)


@cache
def applications() -> tuple[str, ...]:
    """Names of the models in alphabetical order; empty if Keras is not installed."""
    # Found, not imported: Keras would import TensorFlow.
    spec = importlib.util.find_spec("keras")
    if spec is None or not spec.submodule_search_locations:
        return ()
    package, *_ = spec.submodule_search_locations
    tree = parse_or_none(Path(package, "applications", "__init__.py"))
    if tree is None:
        return ()
    names: set[str] = set()
    for statement in tree.body:
        names |= bound_names(statement)
    # Models are classes or functions named like classes; modules are in lower case.
    return tuple(sorted(name for name in names if name[:1].isupper()))


def has_name(task: str) -> bool:
    """Whether a task has a name: built in, from another package, or a Keras model; otherwise it is a file."""
    return task in TASKS or is_application(task)


def is_ours(task: str) -> bool:
    """Whether a task is part of this package; its file then has only literals and needs no import."""
    return task in TASKS.built_in() or is_application(task)


def task_file(task: str) -> Path:
    """Return the file of a task, given by name or by path.

    Raises:
        UserError: The module of a named task is missing from the package that offers it.
    """
    if not has_name(task):
        return Path(task)
    if is_application(task):
        name = APPLICATIONS.module("keras")
    else:
        name = TASKS.module(task)
    # Found, not imported: the file is read for its literals.
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None:
        raise UserError(
            f"the module {name} of the task {task}",
            "none",
            "Repair or uninstall the package that provides it.",
        )
    return Path(spec.origin)
