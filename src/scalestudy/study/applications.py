"""The models of `keras.applications`, by name: known from Keras's own file, which is not imported."""

import ast
import importlib.util
from functools import cache
from pathlib import Path

PREFIX = "keras:"
"""Before the name of a model, as a task: "keras:EfficientNetV2B0"."""
MODULE = "scalestudy.tasks.applications"
"""What makes a task of one."""


def is_application(task: str) -> bool:
    """Whether a task asks for a model of `keras.applications`."""
    return task.startswith(PREFIX)


@cache
def applications() -> tuple[str, ...]:
    """Names of the models, by the alphabet; none where Keras is not installed."""
    spec = importlib.util.find_spec("keras")
    if spec is None or not spec.submodule_search_locations:
        return ()
    file = Path(next(iter(spec.submodule_search_locations)), "applications", "__init__.py")
    try:
        statements = ast.parse(file.read_text("utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return ()
    imported = [each for each in statements if isinstance(each, ast.ImportFrom)]
    names = {alias.asname or alias.name for each in imported for alias in each.names}
    return tuple(sorted(name for name in names if name[:1].isupper()))
