"""What a task file says of its data and its training, read from its syntax tree: nothing of it is run."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalestudy.util.errors import UserError
from scalestudy.util.files import contents

NAMES = ("data", "kind", "train", "read")
"""Names of a task file that are wanted before any framework is there."""


@dataclass(frozen=True)
class TaskText:
    """What the text of a task file tells.

    Attributes:
        values: Those of `NAMES` that are given as literals, by name.
        unknown: Those that only running the file would tell.
    """

    values: dict[str, Any]
    unknown: frozenset[str] = frozenset()

    @property
    def reads(self) -> bool:
        """Whether the file has a function `read`, which gives the data."""
        return "read" in self.unknown


def read_task_file(path: Path) -> TaskText:
    """Read a task file: `data = "folder"` is known, `data = os.environ["DATA"]` is not.

    Raises:
        UserError: If it cannot be read, or is no Python.
    """
    try:
        statements = ast.parse(contents(path)).body
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"a task file that can be imported: {path}",
            f"{type(error).__name__}: {error}",
            "Run it with python to see the whole traceback.",
        ) from error
    values: dict[str, Any] = {}
    unknown: set[str] = set()
    for statement in statements:
        for name, value in _bound(statement):
            values.pop(name, None)
            unknown.discard(name)
            try:
                values[name] = ast.literal_eval(value) if value is not None else _refused()
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                unknown.add(name)
    return TaskText(values, frozenset(unknown))


def _refused() -> Any:
    raise ValueError


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """The wanted names that a top-level statement binds, each with its value if that is one expression."""
    if isinstance(statement, ast.Assign):
        plain = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        yield from ((name, statement.value) for name in plain if name in NAMES)
        yield from ((name, None) for name in _stored(statement.targets) if name not in plain)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        if statement.value is not None and statement.target.id in NAMES:
            yield statement.target.id, statement.value
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        names = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
        yield from ((name, None) for name in NAMES if name in names or "*" in names)
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if statement.name in NAMES:
            yield statement.name, None
    else:
        yield from ((name, None) for name in _stored([statement]))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """The wanted names that something among these assigns to, or defines or imports."""
    inside = [inner for node in nodes for inner in ast.walk(node)]
    found = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    found |= {each.name for each in inside if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    found |= {each.asname or each.name for each in inside if isinstance(each, ast.alias)}
    return found & set(NAMES)
