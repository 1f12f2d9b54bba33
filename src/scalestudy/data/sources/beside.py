"""What lies in or beside a folder without a layout that could be read, with the keys to write for it."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from scalestudy.data.sources.files import Tree, composed, hint_of, role
from scalestudy.data.sources.labels import TABLES, TableColumns, columns_that_would_do
from scalestudy.data.sources.pairing import PATTERNS
from scalestudy.util.text import join_first

ARRAYS = ".npz"
_MOST_TABLES = 5
_MOST_FOLDERS = 20
_LEAST_OF_CLASS = 2
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
    found = [
        *_arrays(tree),
        *_tables(tree),
        *_classes_in_names(tree),
        *_folders_around(tree, reading),
    ]
    otherwise = (
        f"ay where images and masks are: {PATTERNS}; arrange the files in one of these ways; or write "
        "`read(data)` in a task file."
    )
    if not found:
        return f"S{otherwise}"
    keys = "; or ".join(found)
    return f"Write under [data] {keys}. Otherwise, s{otherwise}"


def _arrays(tree: Tree) -> Iterator[str]:
    """Yield the key for files of arrays in a folder without images."""
    if tree.images:
        return
    files = [file for file in tree.others if file.suffix.lower() == ARRAYS]
    for file in files[:_MOST_TABLES]:
        yield f'source = "{file}"'


def _tables(tree: Tree) -> Iterator[str]:
    """Yield the keys for tables in the folder or its parent that name its images."""
    inside = [file for file in tree.others if file.parent == tree.root]
    above = sorted(tree.root.parent.glob("*.*"))
    tables = []
    for file in (*inside, *above):
        if file.suffix.lower() in TABLES:
            tables.append(file)
    # Only a few: the first lines of each are read.
    for table in tables[:_MOST_TABLES]:
        columns = columns_that_would_do(table, tree)
        if columns is not None:
            yield _keys(table, columns)


def columns_beside(table: Path, tree: Tree) -> str:
    """Return what to do about a table whose columns have no usual names: the keys that would do, if any."""
    columns = columns_that_would_do(table, tree)
    if columns is None:
        return "Name the columns: `file_column` and `label_column` under [data]."
    return f"Write under [data] {_keys(table, columns)}."


def _keys(table: Path, columns: TableColumns) -> str:
    first, *others = columns.labels
    keys = [f'source = "{table}"']
    if not columns.file_is_usual:
        keys.append(f'file_column = "{columns.file}"')
    keys.append(f'label_column = "{first}"')
    written = ", ".join(keys)
    if others:
        written += f" (or {join_first(list(map(repr, others)))})"
    return f"{written}, since {table.name} names these images in its column {columns.file!r}"


def _classes_in_names(tree: Tree) -> Iterator[str]:
    """Yield the pattern that finds the fewest classes in the names of all files, each of several files."""
    names = [composed(file.name) for file in tree.images]
    found: dict[str, Counter[str]] = {}
    for pattern in _NAMES_WITH_CLASSES:
        counts = _count_classes(pattern, names)
        if len(counts) > 1:
            found[pattern] = counts
    if not found:
        return
    # The fewest: a pattern that takes a number for a class finds many.
    pattern = min(found, key=lambda each: len(found[each]))
    classes = []
    for name, count in sorted(found[pattern].items()):
        classes.append(f"{name} ({count})")
    shown = join_first(classes)
    yield f"label_pattern = '{pattern}', which finds classes in the names of the files: {shown}"


def _count_classes(pattern: str, names: list[str]) -> Counter[str]:
    """Count the files of each class; none unless all have one, and each class several files."""
    counts: Counter[str] = Counter()
    for name in names:
        match = re.search(pattern, name)
        if match is None:
            return Counter()
        counts[match[1]] += 1
    # What is different in each name is a number of the file, not its class.
    if min(counts.values(), default=0) < _LEAST_OF_CLASS:
        return Counter()
    return counts


def _folders_around(tree: Tree, reading: Reading) -> Iterator[str]:
    """Yield the folder around this one, if those with telling names in it can be read together."""
    parent = tree.root.parent
    siblings = []
    for path in sorted(parent.iterdir()):
        if _tells(path.name) and path.is_dir():
            siblings.append(path)
    if tree.root not in siblings or not 1 < len(siblings) <= _MOST_FOLDERS:
        return
    images: list[Path] = []
    for path in siblings:
        images += Tree.of(path).images
    understood = reading(Tree(parent, tuple(sorted(images)), ()))
    if understood:
        yield f'source = "{parent}" ({understood})'


def _tells(name: str) -> bool:
    hint, _ = hint_of(name)
    return role(name) != (None, None) or hint is not None
