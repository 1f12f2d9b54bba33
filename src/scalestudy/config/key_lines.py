"""The file and the lines of the keys of a TOML text."""

import re
from dataclasses import dataclass, field

# tomllib tells no lines of keys. What is read here only adds a line to a message, so that no full parser is needed.
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
            header = _HEADER.match(row)
            key = _KEY.match(row)
            if header:
                table = _bare(header[1])
                name = table
            elif key:
                name = _bare(key[1])
                if table and name:
                    name = f"{table}.{name}"
                elif table:
                    name = table
            else:
                continue
            # Also for the tables around a key, which may have no line of their own.
            while name:
                lines.setdefault(name, number)
                name, _, _ = name.rpartition(".")
        return cls(file, lines)

    def at(self, *names: str) -> str:
        """The line of the first name that has one, as " (study.toml, line 4)"; "" without a file."""
        if not self.file:
            return ""
        for name in names:
            if name in self.lines:
                return f" ({self.file}, line {self.lines[name]})"
        return f" ({self.file})"

    def of(self, *keys: str) -> str:
        """The line of the first of a study's keys that has one, under [sweep] or in its own section."""
        names = []
        for key in keys:
            _, _, last = key.rpartition(".")
            # First where the sweep varies the key: there its value comes from.
            names += [f"sweep.{key}", f"sweep.{last}", key]
        return self.at(*names)


def _bare(name: str) -> str:
    parts = [part.strip(" \"'") for part in name.split(".")]
    return ".".join(parts)
