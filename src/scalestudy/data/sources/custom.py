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

READ = "read"
BESIDE = ("sequences", "vocabularies", "class_names")
"""Names of a task file, besides `read`, that say how what it gives is stored."""


def code_of_reading(path: Path) -> str:
    """`read` and all that it needs of its file, directly or through others, in their order.

    Comments are left out.

    Raises:
        UserError: If the file cannot be read, is no Python, or defines no `read`.
    """
    try:
        statements = ast.parse(contents(path)).body
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"a Python file that reads the data: {path}",
            f"{type(error).__name__}: {error}",
            "Run it with python to see the whole traceback.",
        ) from error
    bound = [_bound(statement) for statement in statements]
    if not any(READ in names for names in bound):
        raise UserError(
            f"a function `{READ}(data)` in {path}", "none", f"Define `{READ}`, or leave the key `read` out."
        )
    taken: set[int] = set()
    wanted = {READ, *BESIDE}
    while True:
        more = {i for i, names in enumerate(bound) if names & wanted or not names} - taken
        if not more:
            return "\n".join(ast.unparse(statements[i]) for i in sorted(taken))
        taken |= more
        wanted |= {item.id for i in more for item in ast.walk(statements[i]) if isinstance(item, ast.Name)}


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PLAIN = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign)


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a top-level statement gives a meaning to; one that binds none is run for its effect.

    Loops, blocks, and assignments to parts may change whatever they mention.
    """
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    bound: set[str] = set()
    mentioned: set[str] = set()
    plain = isinstance(statement, _PLAIN)
    for inner in ast.walk(statement):
        if isinstance(inner, ast.Name):
            (bound if isinstance(inner.ctx, ast.Store) else mentioned).add(inner.id)
        elif isinstance(inner, ast.alias):
            bound.add((inner.asname or inner.name).partition(".")[0])
        elif isinstance(inner, _DEFINITIONS):
            bound.add(inner.name)
        elif isinstance(inner, ast.Attribute | ast.Subscript) and isinstance(inner.ctx, ast.Store):
            plain = False
    if not bound or "*" in bound:
        return set()
    return bound if plain else bound | mentioned


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
                f"read(data) of {self._file} to come to its end",
                f"its process {how}{last and ': '}{last}",
                "Read in parts, as a generator that yields samples, if memory ran out.",
            )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(item for item in path.rglob("*") if item.is_file())
