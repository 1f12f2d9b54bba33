"""Where each key and list item of a TOML text stands, since `tomllib` does not say; and how that is named."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

KeyPath = tuple[str | int, ...]

LONGEST = 500
"""Lines of a statement that is read; what follows a longer one has no line in messages."""


def line_numbers(text: str) -> dict[KeyPath, int]:
    """Line (from 1) of every table, key and list item of `text`, by its path from the root.

    A statement is the shortest run of lines that is TOML by itself, and an item stands on the first line with
    which, once the brackets are closed, it is in its list.

    Args:
        text: TOML that `tomllib` has accepted; nothing is checked again here.

    Returns:
        `{("sweep",): 3, ("sweep", "workers"): 4, ("sweep", "workers", 0): 4, ...}`.
    """
    rows = text.replace("\r\n", "\n").split("\n")
    lines: dict[KeyPath, int] = {}
    tables: dict[KeyPath, int] = {}  # index of the last table of each array of tables
    table: KeyPath = ()
    start = 0
    while start < len(rows):
        content, end = _statement(rows, start)
        if content is None:
            break
        if rows[start].lstrip().startswith("["):
            table = _header(content, start + 1, lines, tables)
        else:
            _record(content, table, start + 1, lines, _item_lines(rows[start:end], start + 1))
        start = end
    return lines


def _statement(rows: Sequence[str], start: int) -> tuple[dict[str, Any] | None, int]:
    """What the statement that begins on this row says, and the row after it."""
    for end in range(start + 1, min(start + LONGEST, len(rows)) + 1):
        try:
            return tomllib.loads("\n".join(rows[start:end])), end
        except ValueError:
            continue
    return None, start


def _header(
    content: dict[str, Any], line: int, lines: dict[KeyPath, int], tables: dict[KeyPath, int]
) -> KeyPath:
    """Note `[a.b]` or `[[a.b]]`; returns the path of the table that it opens."""
    path: KeyPath = ()
    inner: Any = content
    while isinstance(inner, dict) and inner:
        ((key, inner),) = inner.items()
        path += (key,)
        lines.setdefault(path, line)
        if isinstance(inner, list):
            tables[path] = tables.get(path, -1) + 1
        if path in tables:
            path += (tables[path],)
            lines.setdefault(path, line)
    return path


def _record(
    value: Any, path: KeyPath, line: int, lines: dict[KeyPath, int], items: Sequence[int] = ()
) -> None:
    """Note what is in a value; `items` are the lines of the items of the first list in it."""
    if path:
        lines.setdefault(path, line)
    if isinstance(value, dict):
        for key, inner in value.items():
            _record(inner, (*path, key), line, lines, items)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _record(inner, (*path, index), items[index] if index < len(items) else line, lines)


def _item_lines(rows: Sequence[str], first: int) -> list[int]:
    """Lines of the items of the list that a statement of several rows assigns; none of any other."""
    starts: list[int] = []
    for number in range(1, len(rows) + 1 if len(rows) > 1 else 1):
        for closing in ("", "\n]", "\n]]", "\n]]]"):
            try:
                value: Any = tomllib.loads("\n".join(rows[:number]) + closing)
            except ValueError:
                continue
            while isinstance(value, dict) and len(value) == 1:
                (value,) = value.values()
            starts += [first + number - 1] * ((len(value) if isinstance(value, list) else 0) - len(starts))
            break
    return starts


@dataclass(frozen=True)
class KeyLines:
    """File and lines of a study's keys; empty for a study that was not read from a file.

    `lines` goes by dotted name, an item of a list with its index: "train.epochs", "sweep.workers[2]".
    All compare equal: where a setting was written makes no other study.
    """

    file: str = field(default="", compare=False)
    lines: dict[str, int] = field(default_factory=dict, compare=False)

    def of(self, *names: str) -> str:
        """The line of the first name that has one, as " (study.toml, line 4)"; "" without a file."""
        if not self.file:
            return ""
        line = next((self.lines[name] for name in names if name in self.lines), None)
        return f" ({self.file})" if line is None else f" ({self.file}, line {line})"
