"""The file and the lines of the keys of a TOML text."""

import re
from dataclasses import dataclass, field

_HEADER = re.compile(r"""\s*\[\[?([\w"' .-]+)\]""")
_KEY = re.compile(r"""\s*([\w"' .-]+)=""")


@dataclass(frozen=True)
class KeyLines:
    """File and line numbers of the keys of a TOML text by dotted name ("train.epochs"); empty without a file.

    All instances compare equal: the place of a setting does not change the study.
    """

    file: str = field(default="", compare=False)
    lines: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls, text: str, file: str) -> "KeyLines":
        """Find the line of every key, and the first line of every table, counted from 1."""
        lines: dict[str, int] = {}
        table = ""
        # At line feeds alone, as tomllib counts lines.
        for number, row in enumerate(text.split("\n"), start=1):
            if header := _HEADER.match(row):
                name = table = _bare(header[1])
            elif key := _KEY.match(row):
                name = ".".join(part for part in (table, _bare(key[1])) if part)
            else:
                continue
            # Also for the tables around a key, which may have no line of their own.
            while name:
                lines.setdefault(name, number)
                name = name.rpartition(".")[0]
        return cls(file, lines)

    def at(self, *names: str) -> str:
        """The line of the first name that has one, as " (study.toml, line 4)"; "" without a file."""
        if not self.file:
            return ""
        line = next((self.lines[name] for name in names if name in self.lines), None)
        return f" ({self.file})" if line is None else f" ({self.file}, line {line})"

    def of(self, *keys: str) -> str:
        """The line of the first of a study's keys that has one, under [sweep] or in its own section."""
        names = []
        for key in keys:
            last = key.rpartition(".")[2]
            names += [f"sweep.{key}", f"sweep.{last}", key]
        return self.at(*names)


def _bare(name: str) -> str:
    return ".".join(part.strip(" \"'") for part in name.split("."))
