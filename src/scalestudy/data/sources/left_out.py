"""What lies in a source and is not taken: told whenever it is used, and kept with what is prepared."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SYSTEM = "hidden or of the system"
NO_IMAGE = "no image by their name"
BESIDE = "beside the folders of samples"
OTHER_FORMAT = "of a format that is not read"
ANIMATED = "animated, not one image"
DAMAGED = "damaged"
MOST_NAMES = 5


@dataclass(frozen=True)
class LeftOut:
    """Entries that were left out for one reason.

    Attributes:
        reason: What they are, such as "hidden or of the system".
        count: How many; a folder counts once, whatever it holds.
        names: The first of them, as seen from the source; folders end with a slash.
    """

    reason: str
    count: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.names) else ""
        return f"{self.count} left out ({self.reason}): {', '.join(map(_printable, self.names))}{more}"


@dataclass
class Leftovers:
    """Collects what is left out while a folder is listed."""

    root: Path
    _count: Counter[str] = field(default_factory=Counter)
    _names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, entry: Path) -> None:
        """Leave out this file or folder."""
        self._count[reason] += 1
        names = self._names.setdefault(reason, [])
        if len(names) < MOST_NAMES:
            names.append(entry.relative_to(self.root).as_posix() + "/" * entry.is_dir())

    def take_back(self, reason: str, entry: Path) -> None:
        """Leave it in after all, if it was left out for this reason."""
        name = entry.relative_to(self.root).as_posix()
        if name in self._names.get(reason, ()):
            self._count[reason] -= 1
            self._names[reason].remove(name)

    def found(self) -> tuple[LeftOut, ...]:
        """What was left out, by reason."""
        return tuple(
            LeftOut(reason, self._count[reason], tuple(self._names[reason]))
            for reason in self._names
            if self._count[reason]
        )


def of_source(source: Any) -> tuple[LeftOut, ...]:
    """What a source leaves out: its `left_out`, nothing where it has none."""
    return tuple(getattr(source, "left_out", ()))


def remarks_of(source: Any) -> list[str]:
    """What a source remarks, once its rows are read: nothing where it has no `remarks`."""
    return list(source.remarks()) if hasattr(source, "remarks") else []


def as_json(left_out: Iterable[LeftOut]) -> list[dict[str, Any]]:
    """For the manifest of a prepared set."""
    return [{"reason": group.reason, "count": group.count, "names": list(group.names)} for group in left_out]


def from_json(stored: Iterable[dict[str, Any]]) -> tuple[LeftOut, ...]:
    """What `as_json` has stored.

    Raises:
        KeyError, TypeError: It is something else.
    """
    return tuple(LeftOut(item["reason"], item["count"], tuple(item["names"])) for item in stored)


def _printable(name: str) -> str:
    """A name as a terminal can show it: names of files may hold any byte."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)
