"""The strategies, and what is missing here for each."""

import subprocess
import sys
from typing import Any

from scalestudy.plugins.engines import StrategyLibrary, engine_traits
from scalestudy.plugins.strategies import REGISTRY
from scalestudy.util.errors import UserError

IMPORT_WITHIN = 300
"""Seconds for the import of a framework from a slow file system."""


def refuse_unloadable(library: StrategyLibrary) -> UserError | None:
    """Load a library in a process of its own; return why it cannot be used, None if it can.

    A library that is there may be built for another version of the framework.
    """
    command = [sys.executable, "-P", "-c", f"import {library.module}"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=IMPORT_WITHIN,
        )
    except subprocess.TimeoutExpired:
        seen = f"it took more than {IMPORT_WITHIN} s"
    else:
        if done.returncode == 0:
            return None
        lines = done.stderr.strip().splitlines()
        seen = f"exit code {done.returncode}"
        if lines:
            seen = lines[-1]
    return UserError(
        f"{library.label} to load",
        f"{library.label} does not load: {seen}",
        library.repair,
    )


def strategy_records() -> list[dict[str, Any]]:
    """Return each strategy in display order, with what moves its gradients, and what is missing here for it.

    `synchronous` is whether workers take steps together, `timed` whether its times are meaningful for
    speed-up, `nodes` whether workers may be on several.
    """
    records = []
    for row in REGISTRY.items():
        engine = engine_traits(row.engine)
        libraries = []
        if row.library:
            libraries.append(row.library)
        missing = engine.missing_software(libraries)
        for library in engine.libraries:
            # Only what is installed is loaded, which takes seconds.
            if library.name == row.library and missing is None:
                missing = refuse_unloadable(library)
        record = {
            "strategy": row.name,
            "engine": row.engine,
            "summary": row.summary,
            "synchronous": row.synchronous,
            "nodes": row.spans_nodes,
            "timed": row.timed,
            "summed_by": row.summed_by,
            "missing": "",
            "action": "",
        }
        if missing:
            record["missing"] = missing.received
            record["action"] = missing.action
        records.append(record)
    return records
