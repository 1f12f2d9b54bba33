"""A source that a Python file of the user's reads: `def read(data)`, run once in a process of its own."""

import ast
import json
import os
import signal
from pathlib import Path

from scalestudy.data.sources.base import digest, files_digest
from scalestudy.data.sources.process import ask_module
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.write import OnProgress
from scalestudy.study.settings import DataSettings
from scalestudy.util import modules
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.files import contents

NOT_READ = frozenset((
    "model", "loss", "loss_weights", "metrics", "better", "callbacks", "pretrained", "training_losses",
    "gradients", "kind",
))  # fmt: skip
"""Names of a task file that say nothing of how data are read."""


def code_of_reading(path: Path) -> str:
    """The file without comments and without what defines a model, a loss and the like.

    Raises:
        UserError: If the file cannot be read, is no Python, or defines no `read`.
    """
    try:
        module = ast.parse(contents(path), path.name)
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"a Python file that reads the data: {path}",
            f"{type(error).__name__}: {error}",
            "Run it with python to see the whole traceback.",
        ) from error
    names = {getattr(node, "name", getattr(node, "id", None)) for node in ast.walk(module)}
    if "read" not in names:
        raise UserError(
            f"a function `read(data)` in {path}", "none", "Define `read`, or remove the key `read`."
        )
    others = [statement for statement in module.body if not _bound(statement) & NOT_READ]
    needed = {node.id for item in others for node in ast.walk(item) if isinstance(node, ast.Name)}
    return "\n".join(ast.unparse(item) for item in module.body if not _bound(item) & NOT_READ - needed)


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a definition or a plain assignment gives a meaning to."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement]
    return {getattr(target, "name", getattr(target, "id", "")) for target in targets}


class CustomSource:
    """What `read` of a Python file gives.

    Args:
        file: The file.
        data: The section [data]; its source is `read`'s to understand.
        path: The source, where that is a path that exists.
    """

    kind: Kind = "custom"

    def __init__(self, file: Path, data: DataSettings, path: Path | None) -> None:
        self._file = file
        path = path if path != file else None  # of which only what reads matters
        source = str(path) if path is not None else data.source
        self._data = data.model_copy(update={"source": source})
        self.label = file.stem
        self.identity = f"{source} as {file} reads it"
        read_by = (
            data.source
            if path is None
            else files_digest(path if path.is_dir() else path.parent, _files(path))
        )
        # Never where a file lies: a copy of it reads the same.
        self.fingerprint = digest("custom", 1, code_of_reading(file), read_by, data.image_size, data.seed)

    def write(self, folder: Path, on_progress: OnProgress | None) -> None:
        """Have `read` run, and what it gives written into an empty folder, manifest and all.

        Raises:
            UserError: In the file's own words with its line; or if what it gives cannot be stored.
            RunError: If its process is ended.
        """
        request = {
            "file": str(self._file), "folder": str(folder), "data": self._data.model_dump(mode="json"),
            "identity": self.identity, "fingerprint": self.fingerprint, "parent": os.getpid(),
        }  # fmt: skip
        _, code, last = ask_module(modules.READ_DATA, json.dumps(request), on_progress=on_progress)
        if code:
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            raise RunError(
                f"read(data) of {self._file} to finish",
                f"its process {how}{last and ': '}{last}",
                "If memory ran out, make it a generator that yields samples.",
            )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(item for item in path.rglob("*") if item.is_file())
