"""The files that `--from` names: a file, all of a folder, or a pattern."""

import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.features.imported.tensorboard import NAME, run_folder
from scalestudy.features.imported.text import shown

MOST_FILES = 10_000


@dataclass(frozen=True)
class Place:
    """A file (or a run's folder of event files), and whether the user named it itself."""

    path: Path
    named: bool


def places(sources: Sequence[str]) -> list[Place]:
    """What is to be read, each once, in order.

    Raises:
        UserError: There is no such file, or a folder is one of a study of ours, or holds too many.
    """
    found: dict[Path, Place] = {}
    for source in sources:
        for place in _of(source):
            is_event = NAME in place.path.name
            path = run_folder(place.path) if is_event else place.path
            found.setdefault(path.resolve(), Place(path, place.named and not is_event))
    return list(found.values())


def _of(source: str) -> Iterable[Place]:
    path = Path(source).expanduser()
    if path.is_dir():
        if (path / "study.json").exists():
            raise UserError(
                "numbers that were measured elsewhere after --from",
                f"{shown(source)}, the folder of a study",
                "Name it as DIR, before the options: scalestudy report DIR --from FILE",
            )
        inside = _files(path)
        if not inside:
            raise UserError(
                "a folder with files", f"{shown(source)}, which holds none", "Name another with --from."
            )
        return [Place(each, named=False) for each in inside]
    if path.exists():
        return [Place(path, named=True)]
    matches = sorted(glob.glob(str(path), recursive=True))
    if not matches:
        raise UserError("a file that exists", shown(source), "Correct the name after --from.")
    return [
        place
        for each in matches
        for place in ([Place(Path(each), named=False)] if Path(each).is_file() else _of(each))
    ]


def _files(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.rglob("*"), key=lambda path: (path.parent, _natural(path.name))):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or not path.is_file():
            continue
        found.append(path)
        if len(found) > MOST_FILES:
            raise UserError(
                f"a folder of at most {MOST_FILES:,} files",
                f"more in {shown(str(folder))}",
                "Name a folder within.",
            )
    return found


def _natural(name: str) -> tuple[int, str]:
    """`log_8` before `log_10`."""
    return len(name), name
