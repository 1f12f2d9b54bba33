"""What of a task file decides what it reads, so that a change of its model or loss reads nothing anew."""

import ast
from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.files import contents

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
        wanted |= {each.id for i in more for each in ast.walk(statements[i]) if isinstance(each, ast.Name)}


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PLAIN = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign)


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a top-level statement gives a meaning to; one that binds none is run for its effect.

    Loops, blocks, and assignments to parts may change whatever they mention.
    """
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    found: set[str] = set()
    mentioned: set[str] = set()
    plain = isinstance(statement, _PLAIN)
    for inner in ast.walk(statement):
        if isinstance(inner, ast.Name):
            (found if isinstance(inner.ctx, ast.Store) else mentioned).add(inner.id)
        elif isinstance(inner, ast.alias):
            found.add((inner.asname or inner.name).partition(".")[0])
        elif isinstance(inner, _DEFINITIONS):
            found.add(inner.name)
        elif isinstance(inner, ast.Attribute | ast.Subscript) and isinstance(inner.ctx, ast.Store):
            plain = False
    if not found or "*" in found:
        return set()
    return found if plain else found | mentioned
