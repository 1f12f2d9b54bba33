"""The Python sources of a task: its file and the local modules it imports, compared by what they compute."""

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scalestudy.config.catalog import has_name
from scalestudy.config.point import Point
from scalestudy.util.errors import UserError
from scalestudy.util.files import contents
from scalestudy.util.syntax import find_imports, parse_or_none

FOLDER = "sources"
"""Folder in a study's folder with a copy of each source of its runs."""
ABOVE = 2
"""Folders above its own in which a file that changes `sys.path` finds modules."""
_INSTALLED = {"site-packages", "dist-packages"}
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def source_files(task: str, read: str | None = None) -> dict[str, Path]:
    """Find the files whose code decides what a task computes.

    Args:
        task: Name of a task, or the path of its file. A task with a name has no sources of its own.
        read: File with `read(data)`, if that is another one.

    Returns:
        The task file, `read`, and the modules that they import from their folder, from PYTHONPATH or from a
        package installed as editable, by a path that does not depend on where the study lies.
    """
    found: dict[str, Path] = {}
    if not has_name(task):
        found = _with_imports(Path(task))
    if read is not None and read != task:
        for name, file in _with_imports(Path(read)).items():
            found[f"read/{name}"] = file
    return found


def sources_of(points: Iterable[Point]) -> dict[str, str]:
    """Digests of the sources of points by name, as `digests` returned them."""
    sources: dict[str, str] = {}
    for point in points:
        sources |= point.sources
    return sources


def digests(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each file's syntax tree; comments, docstrings and layout do not change it."""
    # Not of the file: a corrected comment must not make trained runs those of another task.
    found = {}
    for name, file in files.items():
        found[name] = hashlib.sha256(_comparable(file)).hexdigest()
    return found


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Sentences on changed sources, such as "own.py has changed", from earlier digests and those of now."""
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            yield f"{name} is not imported any more"
        elif name not in before:
            yield f"{name} is not among the sources of its runs"
        elif before[name] != now[name]:
            yield f"{name} has changed"


def refuse_edited(point: Point) -> None:
    """Refuse to run a point whose sources were edited after it was started or submitted.

    Raises:
        UserError: Names the files.
    """
    # The worker imports what is on disk now, not what was when the run was planned.
    files = source_files(point.task, point.data.read)
    stored = {}
    for name in point.sources.keys() & files.keys():
        stored[name] = files[name]
    now = digests(stored)
    edited = []
    for name in sorted(now):
        if now[name] != point.sources[name]:
            edited.append(str(files[name]))
    if edited:
        raise UserError(
            f"the sources with which {point.name} was started",
            f"edited ones: {', '.join(edited)}",
            "Undo the edit and run the study again, or run it into another folder with --out.",
        )


def _with_imports(file: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    todo = [(file.name, file, "")]
    folders = _import_folders(file)
    while todo:
        name, path, package = todo.pop()
        tree = parse_or_none(path)
        if name in found or not path.is_file():
            continue
        found[name] = path
        if tree is not None:
            for module in find_imports(tree, package):
                todo += _local(module, folders)
    return found


def _import_folders(file: Path) -> list[str]:
    """Return the folders of a file's local modules: its own, and those above it if it changes `sys.path`.

    Such files put a folder above them on `sys.path`. What they compute for it is not evaluated.
    """
    folder = file.absolute().parent
    folders = [folder]
    tree = parse_or_none(file)
    if tree is not None and _names_sys_path(tree):
        folders += folder.parents[:ABOVE]
    return [str(each) for each in folders]


def _names_sys_path(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        if ast.unparse(node) == "sys.path":
            return True
    return False


def _local(module: str, folders: Sequence[str]) -> Iterator[tuple[str, Path, str]]:
    """Name, file and package of a local module and of each package around it."""
    first, *inner = module.split(".")
    spec = _local_spec(first, folders)
    parts = [first]
    while spec is not None:
        if spec.origin is not None and spec.origin.endswith(".py"):
            path = "/".join(parts)
            file = Path(spec.origin)
            # Relative imports start at the package: itself, or the one around a module.
            if spec.submodule_search_locations is not None:
                yield f"{path}/__init__.py", file, ".".join(parts)
            else:
                yield f"{path}.py", file, ".".join(parts[:-1])
        if not inner:
            return
        parts.append(inner.pop(0))
        places = list(spec.submodule_search_locations or ())
        spec = PathFinder.find_spec(parts[-1], places)


def _local_spec(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    """Find a module that is neither installed nor part of Python or of this package, as an import would."""
    # First as Python does: a module beside the file hides an installed one.
    beside = PathFinder.find_spec(name, folders)
    if beside is not None and beside.origin is not None:
        return beside
    if name in sys.stdlib_module_names or name == __name__.partition(".")[0]:
        return None
    spec = PathFinder.find_spec(name, [*folders, *sys.path])
    if spec is None:
        # A package installed as editable, which a finder of its own knows. ValueError: a module that was not
        # made by an import.
        with suppress(ImportError, ValueError):
            spec = find_spec(name)
    if spec is None:
        return None
    for place in (spec.origin, *(spec.submodule_search_locations or ())):
        if place and _is_installed(Path(place)):
            return None
    return spec


def _is_installed(place: Path) -> bool:
    """Whether a module or package lies among installed ones, also where pip has put them by --target."""
    if _INSTALLED.intersection(place.parts):
        return True
    around = place.parent
    if place.name == "__init__.py":
        around = around.parent
    return any(around.glob("*.dist-info"))


def _comparable(file: Path) -> bytes:
    """Return the same bytes for files that compute the same, under every version of Python."""
    tree = parse_or_none(file)
    # What is not valid Python is compared byte by byte.
    if tree is None:
        return contents(file)
    plain = _plain(_without_docstrings(tree))
    return repr(plain).encode()


def _plain(node: Any) -> Any:
    """Return a syntax tree as tuples, without the empty fields that versions of Python add."""
    if isinstance(node, list):
        return tuple(map(_plain, node))
    if node is None:
        return None
    if not isinstance(node, ast.AST):
        return repr(node)
    plain: list[Any] = [type(node).__name__]
    for name, child in ast.iter_fields(node):
        value = _plain(child)
        # `kind` is the u of u"text".
        if name != "kind" and value not in (None, ()):
            plain.append((name, value))
    return tuple(plain)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if not isinstance(node, _WITH_DOCSTRING):
            continue
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str())), *others]:
                # A body of a docstring alone does nothing, like `pass`.
                node.body = others or [ast.Pass()]
    return tree
