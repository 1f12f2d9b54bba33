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
_INSTALLED = {"site-packages", "dist-packages"}


def source_files(task: str, read: str | None = None) -> dict[str, Path]:
    """Find the files whose code decides what a task computes.

    Args:
        task: Name of a task, or the path of its file. A task with a name has no sources of its own.
        read: File with `read(data)`, if that is another one.

    Returns:
        The task file, `read`, and the modules that they import from their folder, from PYTHONPATH or from a
        package installed as editable, by a path that does not depend on where the study lies.
    """
    found = {} if has_name(task) else _with_imports(Path(task))
    if read is not None and read != task:
        found |= {
            f"read/{name}": file for name, file in _with_imports(Path(read)).items()
        }
    return found


def sources_of(points: Iterable[Point]) -> dict[str, str]:
    """Digests of the sources of points by name, as `digests` returned them."""
    return {name: digest for point in points for name, digest in point.sources.items()}


def digests(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each file's syntax tree; comments, docstrings and layout do not change it."""
    return {
        name: hashlib.sha256(_comparable(file)).hexdigest()
        for name, file in files.items()
    }


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
    files = source_files(point.task, point.data.read)
    now = digests({name: files[name] for name in point.sources.keys() & files.keys()})
    if edited := sorted(name for name in now if now[name] != point.sources[name]):
        raise UserError(
            f"the sources with which {point.name} was started",
            f"edited ones: {', '.join(str(files[name]) for name in edited)}",
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
        for module in find_imports(tree, package) if tree else ():
            todo += _local(module, folders)
    return found


ABOVE = 2
"""Folders above its own in which a file that changes `sys.path` finds modules."""


def _import_folders(file: Path) -> list[str]:
    """Return the folders of a file's local modules: its own, and those above it if it changes `sys.path`.

    Such files put a folder above them on `sys.path`. What they compute for it is not evaluated.
    """
    folder = file.absolute().parent
    tree = parse_or_none(file)
    changed = tree is not None and any(
        isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path"
        for node in ast.walk(tree)
    )
    return [str(folder), *(map(str, [*folder.parents][:ABOVE]) if changed else ())]


def _local(module: str, folders: Sequence[str]) -> Iterator[tuple[str, Path, str]]:
    """Name, file and package of a local module and of each package around it."""
    spec: ModuleSpec | None = None
    for depth, part in enumerate(parts := module.split(".")):
        full = ".".join(parts[: depth + 1])
        if depth == 0:
            spec = _local_spec(part, folders)
        elif spec is not None:
            spec = PathFinder.find_spec(
                part, list(spec.submodule_search_locations or [])
            )
        if spec is None:
            return
        if spec.origin is not None and spec.origin.endswith(".py"):
            is_package = spec.submodule_search_locations is not None
            name = "/".join(parts[: depth + 1]) + (
                "/__init__.py" if is_package else ".py"
            )
            yield (
                name,
                Path(spec.origin),
                full if is_package else full.rpartition(".")[0],
            )


def _local_spec(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    """Find a module that is neither installed nor part of Python or of this package, as an import would."""
    beside = PathFinder.find_spec(name, folders)
    if beside is not None and beside.origin is not None:
        return beside
    if name in sys.stdlib_module_names or name == __name__.partition(".")[0]:
        return None
    spec = PathFinder.find_spec(name, [*folders, *sys.path])
    with suppress(
        ImportError, ValueError
    ):  # ValueError: a module that was not made by an import
        spec = spec or find_spec(name)  # packages installed as editable
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    return (
        None if any(_is_installed(Path(place)) for place in places if place) else spec
    )


def _is_installed(place: Path) -> bool:
    """Whether a module or package lies among installed ones, also where pip has put them by --target."""
    around = place.parent.parent if place.name == "__init__.py" else place.parent
    return (
        bool(_INSTALLED & {*place.parts})
        or next(around.glob("*.dist-info"), None) is not None
    )


def _comparable(file: Path) -> bytes:
    """Return the same bytes for files that compute the same, under every version of Python."""
    tree = parse_or_none(file)
    return (
        contents(file)
        if tree is None
        else repr(_plain(_without_docstrings(tree))).encode()
    )


def _plain(node: Any) -> Any:
    """Return a syntax tree as tuples, without the empty fields that versions of Python add."""
    if isinstance(node, ast.AST):
        fields = (
            (name, _plain(value))
            for name, value in ast.iter_fields(node)
            if name != "kind"
        )
        return type(node).__name__, *(
            field for field in fields if field[1] not in (None, ())
        )
    if isinstance(node, list):
        return tuple(map(_plain, node))
    return node if node is None else repr(node)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())), *others]:
                    node.body = others or [ast.Pass()]
    return tree
