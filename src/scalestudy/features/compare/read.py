"""Studies read and held against each other. Prints nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.read import read_study
from scalestudy.errors import UserError
from scalestudy.features.compare.comparison import Comparison, compare
from scalestudy.features.compare.side import Side
from scalestudy.study.compare import settings_of
from scalestudy.study.store import StudyFolder


def compared_studies(arguments: Sequence[str], read_file: Callable[[Path], Findings]) -> Comparison:
    """The studies of results folders, the first of them being the reference.

    Args:
        arguments: Folders, or files of numbers that were measured elsewhere, each as PATH or as NAME=PATH.
        read_file: Analyses such a file.

    Raises:
        UserError: One is no study's folder and no file that is known, two have one name, or they cannot be
            compared.
    """
    sides = [_side(argument, read_file) for argument in arguments]
    names = [side.name for side in sides]
    if len(set(names)) < len(names):
        raise UserError(
            "studies of different names", ", ".join(names), "Name them yourself: before=DIR after=DIR."
        )
    return compare(sides)


def _side(argument: str, read_file: Callable[[Path], Findings]) -> Side:
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
