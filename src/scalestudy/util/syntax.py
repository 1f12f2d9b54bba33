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
    # ValueError: a NUL byte. RecursionError: an expression that is nested too deeply.
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
    # Walked, since `try:` and `if` may bind names at the top level, too.
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            # `import a.b` binds `a`.
            bound = node.asname or node.name
            names.add(bound.partition(".")[0])
    return names


def find_imports(tree: ast.AST, package: str = "") -> Iterator[str]:
    """Yield absolute names of modules that may be imported, wherever in the file, by a module of `package`.

    `from a import b` yields "a.b", since `b` may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            base = _imported_from(node, package)
            if base:
                for alias in node.names:
                    yield f"{base}.{alias.name}"


def _imported_from(node: ast.ImportFrom, package: str) -> str:
    """Return the absolute name after `from`; "" for a relative one outside of a package."""
    names: list[str] = []
    if node.level:
        if not package:
            return ""
        # One dot is the package itself, each further one the package above.
        around = package.split(".")
        names += around[: len(around) - node.level + 1]
    if node.module:
        names.append(node.module)
    return ".".join(names)
