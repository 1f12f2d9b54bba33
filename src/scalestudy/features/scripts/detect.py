"""Which script runs here, and whether this process is one that multiprocessing has started."""

import multiprocessing
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SPAWNED = "__mp_main__"
"""What multiprocessing calls the script in a process that it has spawned."""


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
