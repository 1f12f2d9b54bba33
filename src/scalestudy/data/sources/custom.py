"""A source read by `read(data)` of a user's Python file, which runs once in a separate process."""

import ast
import json
from pathlib import Path

from scalestudy.config.settings import DataSettings
from scalestudy.data.child import ask
from scalestudy.data.sources.base import digest, files_digest
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.write import OnProgress
from scalestudy.util import modules
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.syntax import bound_names, parsed

_OF_TRAINING = "model loss loss_weights metrics better callbacks pretrained training_losses gradients kind"
NOT_READ = frozenset(_OF_TRAINING.split())
"""Names of a task file that do not affect how data is read."""


def code_of_reading(path: Path) -> str:
    """Return the code of a file without comments and without definitions of a model, a loss and so on.

    Raises:
        UserError: If the file cannot be read, is not valid Python, or defines no `read`.
    """
    module = parsed(path, "a Python file that reads the data")
    names = {getattr(node, "name", getattr(node, "id", None)) for node in ast.walk(module)}
    if "read" not in names:
        raise UserError(
            f"a function `read(data)` in {path}", "none", "Define `read`, or remove the key `read`."
        )
    others = [statement for statement in module.body if not _binds_only(statement, NOT_READ)]
    needed = {node.id for item in others for node in ast.walk(item) if isinstance(node, ast.Name)}
    return "\n".join(ast.unparse(item) for item in module.body if not _binds_only(item, NOT_READ - needed))


def _binds_only(statement: ast.stmt, names: frozenset[str]) -> bool:
    bound = bound_names(statement)
    return bool(bound) and bound <= names


class CustomSource:
    """Samples from `read` of a Python file.

    Args:
        data: Section [data]; `read` interprets its source.
        path: The source, if it is an existing path.
    """

    kind: Kind = "custom"

    def __init__(self, file: Path, data: DataSettings, path: Path | None) -> None:
        self._file = file
        path = path if path != file else None  # the file itself: only its reading code matters
        source = str(path) if path is not None else data.source
        self._data = data.model_copy(update={"source": source})
        self.label = file.stem
        self.identity = f"{source} as {file} reads it"
        read_by = (
            data.source
            if path is None
            else files_digest(path if path.is_dir() else path.parent, _files(path))
        )
        # Without the path of the file: a copy reads the same.
        self.fingerprint = digest("custom", 1, code_of_reading(file), read_by, data.image_size, data.seed)

    def write(self, folder: Path, on_progress: OnProgress | None, within: float) -> None:
        """Run `read` and write its samples and the manifest into an empty folder.

        Raises:
            UserError: If `read` raises an error or gives no sample `within` seconds (either named with its
                line), or its samples cannot be stored.
            RunError: If the process fails without an answer.
        """
        request = {
            "file": str(self._file),
            "folder": str(folder),
            "data": self._data.model_dump(mode="json"),
            "identity": self.identity,
            "fingerprint": self.fingerprint,
            "within": within,
        }
        answer = ask(modules.READ_DATA, json.dumps(request), on_progress=on_progress)
        if answer.code:
            raise RunError(
                f"read(data) of {self._file} to finish",
                answer.end(),
                "If memory ran out, make it a generator that yields samples.",
            )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(item for item in path.rglob("*") if item.is_file())
