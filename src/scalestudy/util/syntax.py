"""Python files, read without running them."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from scalestudy.util.errors import UserError
from scalestudy.util.files import contents

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
            names: list[str] = []
            if node.level:
                # One dot is the package itself, each further one the package above.
                around = package.split(".")
                names += around[: len(around) - node.level + 1]
            if node.module:
                names.append(node.module)
            if names:
                base = ".".join(names)
                yield from (f"{base}.{alias.name}" for alias in node.names)
