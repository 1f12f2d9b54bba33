"""Where each key and list item of a TOML text stands, since `tomllib` does not say; and how that is named."""

import re
import tomllib
from dataclasses import dataclass, field

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\r\n]+")


def line_numbers(text: str) -> dict[Path, int]:
    """Line (from 1) of every table, key and list item of `text`, by its path from the root.

    Args:
        text: TOML that `tomllib` has accepted; nothing is checked again here.

    Returns:
        `{("sweep",): 3, ("sweep", "workers"): 4, ("sweep", "workers", 0): 4, ...}`.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counted = (0, 1)
        self.lines: dict[Path, int] = {}
        self.tables: dict[Path, int] = {}

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self.lines

    def _header(self) -> Path:
        line, array = self._line(), self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        path: Path = ()
        keys = self._key()
        for number, key in enumerate(keys):
            path += (key,)
            self.lines.setdefault(path, line)
            if array and number == len(keys) - 1:
                self.tables[path] = self.tables.get(path, -1) + 1
            if path in self.tables:
                path += (self.tables[path],)
                self.lines.setdefault(path, line)
        self.at += 2 if array else 1
        return path

    def _pair(self, table: Path) -> None:
        line, path = self._line(), table
        for key in self._key():
            path += (key,)
            self.lines.setdefault(path, line)
        self.at += 1
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        """A dotted key; afterwards the scanner stands behind it and its spaces."""
        keys = []
        while True:
            self._skip(_SPACE)
            if self.text[self.at] in "\"'":
                quoted = self._take(_STRING)
                keys.append(str(tomllib.loads(f"key = {quoted}")["key"]))
            else:
                keys.append(self._take(_BARE))
            self._skip(_SPACE)
            if self.at >= len(self.text) or self.text[self.at] != ".":
                return keys
            self.at += 1

    def _value(self, path: Path) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._take(_STRING)
        elif first == "[":
            self._items(path)
        elif first == "{":
            self._inline(path)
        else:
            self._take(_SCALAR)

    def _items(self, path: Path) -> None:
        self.at += 1
        index = 0
        self._skip(_BLANK)
        while self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
            else:
                self.lines[(*path, index)] = self._line()
                self._value((*path, index))
                index += 1
            self._skip(_BLANK)
        self.at += 1

    def _inline(self, path: Path) -> None:
        self.at += 1
        self._skip(_BLANK)
        while self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
            else:
                self._pair(path)
            self._skip(_BLANK)
        self.at += 1

    def _line(self) -> int:
        start, line = self.counted
        self.counted = (self.at, line + self.text.count("\n", start, self.at))
        return self.counted[1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, f"not TOML at {self.text[self.at : self.at + 20]!r}"
        self.at = match.end()
        return match.group()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()


@dataclass(frozen=True)
class Place:
    """File and lines of a study's keys; empty for a study that was not read from a file.

    `lines` goes by dotted name, an item of a list with its index: "train.epochs", "sweep.workers[2]".
    All places compare equal: where a setting was written makes no other study.
    """

    file: str = field(default="", compare=False)
    lines: dict[str, int] = field(default_factory=dict, compare=False)

    def of(self, *names: str) -> str:
        """The line of the first name that has one, as " (study.toml, line 4)"; "" without a file."""
        if not self.file:
            return ""
        line = next((self.lines[name] for name in names if name in self.lines), None)
        return f" ({self.file})" if line is None else f" ({self.file}, line {line})"
