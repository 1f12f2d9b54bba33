"""Find the script of this process, and whether multiprocessing has started the process."""

import multiprocessing
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SPAWNED = "__mp_main__"
"""Module name that multiprocessing gives to the script in a spawned process."""


def main_file(modules: Mapping[str, Any] = sys.modules) -> Path | None:
    """Return the file of the running script; None in a notebook or at a prompt."""
    main = modules.get(SPAWNED) if _imports_anew(modules) else modules.get("__main__")
    file = getattr(main, "__file__", None)
    return Path(file) if file else None


def is_helper(modules: Mapping[str, Any] = sys.modules) -> bool:
    """Return whether multiprocessing has started this process, for example to load data."""
    return multiprocessing.parent_process() is not None or _imports_anew(modules)


def _imports_anew(modules: Mapping[str, Any]) -> bool:
    """Return whether this process was spawned and imports the script as `SPAWNED` (elsewhere an alias)."""
    return getattr(modules.get(SPAWNED), "__name__", "") == SPAWNED
