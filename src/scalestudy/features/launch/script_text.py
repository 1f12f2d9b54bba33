"""The current version of a script: its path, its arguments, and its sources."""

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.config.task_sources import digests, source_files
from scalestudy.features.launch.join import ARGUMENTS as GIVEN
from scalestudy.features.launch.join import SOURCE, main_file
from scalestudy.util.errors import UserError

ARGUMENTS = "script.arguments"
"""Swept key for a script's arguments, in a study whose first run had some."""


class ScriptText(NamedTuple):
    """The current version of a script: its path, its arguments, and the SHA-256 of its sources."""

    file: Path
    arguments: tuple[str, ...]
    digest: str

    @property
    def swept(self) -> dict[str, Any]:
        """Its arguments as a swept value; empty if it has none."""
        if not self.arguments:
            return {}
        return {ARGUMENTS: shlex.join(self.arguments)}

    @property
    def source(self) -> str:
        """Identifier of the script's code and of the modules it imports, in the place of a data source."""
        return f"sha256:{self.digest}"


def script_text(file: Path, arguments: Sequence[str]) -> ScriptText:
    """Read the current version of a script."""
    path = file.absolute()
    # With the modules beside it: many scripts leave the training to one of them.
    files = source_files(str(path))
    # Sorted, so that the digest is of the files, and not of the order in which they were found.
    sources = json.dumps(digests(files), sort_keys=True)
    digest = hashlib.sha256(sources.encode()).hexdigest()
    return ScriptText(path, tuple(arguments), digest)


def script_here() -> ScriptText:
    """Return the script that this process runs; raises `UserError` if it runs no script.

    The launcher has read its version: a script may have changed `sys.path` since, and so what it imports.
    """
    file = main_file()
    if file is None or not file.is_file():
        raise UserError(
            "a script in a file",
            "none",
            "Save the code to a file, and run that.",
        )
    if GIVEN not in os.environ:
        arguments = sys.argv[1:]
    else:
        # With their expressions: `{16*workers}` names one row of the table, its values would be several.
        arguments = shlex.split(os.environ[GIVEN])
    if SOURCE in os.environ:
        return ScriptText(file.absolute(), tuple(arguments), os.environ[SOURCE])
    return script_text(file, arguments)
