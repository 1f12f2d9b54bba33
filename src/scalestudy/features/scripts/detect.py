"""What a script trains with, by what it imports; nothing of it is run."""

import ast
import multiprocessing
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalestudy.study.engines import DEFAULT, EngineTraits, engine_names, engine_traits
from scalestudy.util.files import contents

SPAWNED = "__mp_main__"
"""What multiprocessing calls the script in a process that it has spawned."""


def engine_of_script(file: Path, variables: Mapping[str, str] = os.environ) -> EngineTraits:
    """The engine of a script: one whose `script_modules` it imports, else the default.

    A script that imports Keras or the default engine's framework too is the default's, unless
    KERAS_BACKEND says which engine it means.
    """
    default = engine_traits(DEFAULT)
    imported = imported_modules(file)
    keras = {package for requirement in default.requirements for package in requirement.packages}
    for name in engine_names():
        engine = engine_traits(name)
        if imported & set(engine.script_modules):
            other = bool(imported & keras) and variables.get("KERAS_BACKEND") != name
            return default if other else engine
    return default


def imported_modules(file: Path) -> set[str]:
    """Top-level names of all modules that a file imports, at whatever depth; none where it is no Python."""
    try:
        tree = ast.parse(contents(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def main_file(modules: Mapping[str, Any] = sys.modules) -> Path | None:
    """The file of the script that runs; None in a notebook or at a prompt."""
    main = modules.get(SPAWNED) if _imports_anew(modules) else modules.get("__main__")
    file = getattr(main, "__file__", None)
    return Path(file) if file else None


def is_helper(modules: Mapping[str, Any] = sys.modules) -> bool:
    """Whether multiprocessing has started this process, to load data, say."""
    return multiprocessing.parent_process() is not None or _imports_anew(modules)


def _imports_anew(modules: Mapping[str, Any]) -> bool:
    """Whether this process was spawned, and imports the script under another name (elsewhere an alias)."""
    return getattr(modules.get(SPAWNED), "__name__", "") == SPAWNED
