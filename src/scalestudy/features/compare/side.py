"""One of the studies that are held against each other, and what of it may be compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import is_virtual, oversubscription
from scalestudy.analysis.read import read_study
from scalestudy.analysis.runs import Key, Run
from scalestudy.study.differences import settings_of
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class Side:
    """A study under the name it has in the comparison.

    Attributes:
        name: As columns are headed.
        findings: The study as analysed.
        asked: What it asked for by dotted key, as JSON values; empty where nobody knows.
    """

    name: str
    findings: Findings
    asked: Mapping[str, Any] = field(default_factory=dict)

    def runs(self, key: Key) -> list[Run]:
        """Runs of a row; none where it has none."""
        return list(self.findings.measures.groups.get(key, ()))

    def timed(self, key: Key) -> bool:
        """Whether the row's times say something."""
        runs = self.runs(key)
        return bool(runs) and not oversubscription(runs) and not is_virtual(runs)


def read_side(argument: str, read_file: Callable[[Path], Findings]) -> Side:
    """A study as the command line names it.

    Args:
        argument: A results folder, or a file of numbers that were measured elsewhere, as PATH or NAME=PATH.
        read_file: Analyses such a file.

    Raises:
        UserError: It is neither the folder of a study nor a file that can be read.
    """
    name, separator, rest = argument.partition("=")
    named = bool(separator) and not Path(argument).exists()
    if named and not name:
        raise UserError("NAME=DIR or DIR", repr(argument), "Write a name before the =.")
    path = Path(rest if named else argument)
    if path.is_file():
        return Side(name if named else path.stem, read_file(path))
    folder = StudyFolder.open(path)
    own = folder.path.resolve().name
    return Side(name if named else own, read_study(folder), settings_of(folder.study))


def differences(sides: tuple[Side, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Keys that were asked for differently, each with its value on every side; "" where it is not known."""
    known = [side for side in sides if side.asked]
    keys = list(dict.fromkeys(key for side in known for key in side.asked))
    found = []
    for key in keys:
        values = tuple(_text(side.asked[key]) if key in side.asked else "" for side in sides)
        if len({value for value, side in zip(values, sides, strict=True) if side.asked}) > 1:
            found.append((key, values))
    return found


def unlike_tasks(sides: tuple[Side, ...]) -> list[str]:
    """Tasks of the sides where they differ: nothing of these can be compared."""
    tasks = [PurePath(str(side.asked["task"])).name for side in sides if "task" in side.asked]
    return tasks if len(set(tasks)) > 1 else []


_OF_RESULTS = ("launch.", "train.steps_per_call", "data.cache", "data.storage", "data.source")
"""Keys that decide how fast a run is, or where its data lie, and not what it computes."""


def unpaired_because(first: Side, second: Side) -> str | None:
    """Why runs of one seed share nothing on two sides; None where they see one split and one start."""
    if not first.asked or not second.asked:
        return "what was asked for is not known of both"
    unlike = [
        key
        for key, _ in differences((first, second))
        if not key.startswith(_OF_RESULTS) and key.startswith(("task", "data.", "train."))
    ]
    return f"not alike are {', '.join(unlike)}" if unlike else None


def _text(value: Any) -> str:
    return "" if value is None else str(value)
