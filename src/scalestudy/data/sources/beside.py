"""What lies in or beside a folder without a layout that could be read, with the keys to write for it."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from scalestudy.data.sources.files import Tree, composed, hint_of, is_system_name, role, several
from scalestudy.data.sources.labels import TABLES, TableColumns, columns_that_would_do
from scalestudy.data.sources.pairing import PATTERNS

_MOST_TABLES = 5
_MOST_FOLDERS = 20
_NAMES_WITH_CLASSES = (
    r"^([A-Za-z]+)[-_. ]*\d",
    r"^(.+?)[-_. ]*\d+\.[^.]+$",
    r"^([^-_. ]+)[-_. ]",
    r"[-_. ]([^-_. ]+)\.[^.]+$",
)
"""Patterns of the class in a name, in order: `cat.12.jpg`, `Great_Dane_12.jpg`, `3_12.png`, `12_b.png`."""

Reading = Callable[[Tree], str | None]
"""Returns how a folder is understood; None if it is refused."""


def beside(tree: Tree, reading: Reading) -> str:
    """Return what to do about a folder without a layout: first what lies there, else what is expected."""
    found = [*_tables(tree), *_classes_in_names(tree), *_folders(tree, reading)]
    otherwise = (
        f"Say where images and masks are: {PATTERNS}; arrange the files in one of these ways; or write "
        "`read(data)` in a task file."
    )
    return f"Write under [data] {'; or '.join(found)}. Otherwise: {otherwise}" if found else otherwise


def _tables(tree: Tree) -> Iterator[str]:
    """Yield the keys for tables in the folder or its parent that name its images."""
    inside = [file for file in tree.others if file.parent == tree.root]
    above = sorted(path for path in tree.root.parent.glob("*.*") if path.is_file())
    tables = [file for file in (*inside, *above) if file.suffix.lower() in TABLES]
    for table in tables[:_MOST_TABLES]:
        columns = columns_that_would_do(table, tree)
        if columns is not None:
            yield _keys(table, columns)


def _keys(table: Path, columns: TableColumns) -> str:
    first, *others = columns.labels
    keys = [f'source = "{table}"']
    if not columns.file_is_usual:
        keys.append(f'file_column = "{columns.file}"')
    keys.append(f'label_column = "{first}"')
    more = f" (or {several([repr(name) for name in others])})" if others else ""
    return f"{', '.join(keys)}{more}, since {table.name} names these images in its column {columns.file!r}"


def _classes_in_names(tree: Tree) -> Iterator[str]:
    """Yield the pattern that finds a few classes in the names of all files, each of several files."""
    names = [composed(file.name) for file in tree.images]
    for pattern in _NAMES_WITH_CLASSES:
        matches = [re.search(pattern, name) for name in names]
        counts = Counter(match[1] for match in matches if match)
        if counts.total() == len(names) and len(counts) > 1 and min(counts.values()) > 1:
            classes = several([f"{name} ({count})" for name, count in sorted(counts.items())])
            yield f"label_pattern = '{pattern}', which finds classes in the names of the files: {classes}"
            return


def _folders(tree: Tree, reading: Reading) -> Iterator[str]:
    """Yield folders inside of this one, or the one around it, that can be read."""
    names = sorted({tree.relative(file).parts[0] for file in tree.images if file.parent != tree.root})
    for name in names[:_MOST_FOLDERS]:
        inner = tree.root / name
        understood = reading(Tree(inner, _below(inner, tree.images), _below(inner, tree.others)))
        if understood:
            yield f'source = "{inner}" ({understood})'
            return
    # Of the folder around it only folders with telling names: it may hold anything.
    siblings = [
        path
        for path in sorted(tree.root.parent.iterdir())
        if not is_system_name(path.name) and path.is_dir() and _tells(path.name)
    ]
    if tree.root in siblings and 1 < len(siblings) <= _MOST_FOLDERS:
        trees = [Tree.of(path) for path in siblings]
        images = tuple(sorted(file for each in trees for file in each.images))
        understood = reading(Tree(tree.root.parent, images, ()))
        if understood:
            yield f'source = "{tree.root.parent}" ({understood})'


def _below(folder: Path, files: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(file for file in files if file.is_relative_to(folder))


def _tells(name: str) -> bool:
    return role(name) != (None, None) or hint_of(name)[0] is not None
