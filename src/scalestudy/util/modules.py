"""Python modules: those started as processes, imports of frameworks, and files read without running them.

With the names of processes, a package may start a module of a higher package without importing it. In a
folder that the user chooses, `python -P` is used, so that no file there is taken for a module.
"""

import ast
import contextlib
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from scalestudy.util.errors import UserError
from scalestudy.util.files import contents

WORKER = "scalestudy.worker"
"""A process of a run or of a check: the command that every launcher starts."""
HOST_AGENT = "scalestudy.launch.host_agent"
"""Starts and ends the workers of a run on its host, as long as its standard input is open."""
JOB_WRAPPER = "scalestudy.launch.queue.wrapper"
"""Supervises the workers of a job, on its first node."""
INFERENCE = "scalestudy.features.predict.model_worker"
"""A process that uses a trained model."""
TASK_FILE = "scalestudy.tasks.child"
"""Runs the code of a user's file: to store the samples of its `read(data)`, or to build its model."""
DESCRIBE_ENVIRONMENT = "scalestudy.hardware.installed"


@contextlib.contextmanager
def without_unused(unused: Sequence[str]) -> Iterator[None]:
    """Within the context, treat these packages, which are not needed, as not installed.

    Garbage collection, a sixth of the import's processor time, is also disabled. Imported objects stay alive,
    so they are frozen at the end, and the collector ignores them from then on.
    """
    hidden = [name for name in unused if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment] # Python's own sign for "not to be found"
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
        gc.freeze()
        if collecting:
            gc.enable()


EVERYTHING = "*"


def parse(path: Path, expected: str) -> ast.Module:
    """Parse a file; raises UserError with what was `expected` if it cannot be read or is not valid."""
    try:
        return ast.parse(contents(path), path.name)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise UserError(
            f"{expected}: {path}",
            f"{type(error).__name__}: {error}",
            "Run it with python to see the whole traceback.",
        ) from error


def parse_or_none(path: Path) -> ast.Module | None:
    """Parse a file; None if it cannot be read or is not valid."""
    with suppress(UserError):
        return parse(path, "")
    return None


def bound_names(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement assigns, defines or imports; `EVERYTHING` for `*`."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names


def find_imports(tree: ast.AST, package: str = "") -> Iterator[str]:
    """Yield absolute names of modules that may be imported, wherever in the file, by a module of `package`.

    `from a import b` yields "a.b", since `b` may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            above = (
                package.split(".")[: len(package.split(".")) - node.level + 1]
                if node.level
                else []
            )
            base = ".".join([*above, *filter(None, [node.module])])
            if base:
                yield from (f"{base}.{alias.name}" for alias in node.names)


UNKNOWN_VERSION = "0.1.1.dev0"
"""Version of a source tree without git history, as in pyproject.toml (fallback_version)."""


def version() -> str:
    """Return the installed version; `UNKNOWN_VERSION` if Scalestudy is not installed."""
    try:
        return metadata.version("scalestudy")
    except metadata.PackageNotFoundError:
        return UNKNOWN_VERSION


def own_source() -> Path | None:
    """Return the folder that Scalestudy is imported from; None if it is installed in site-packages."""
    folder = Path(__file__).resolve().parents[2]
    return None if folder.name in ("site-packages", "dist-packages") else folder
