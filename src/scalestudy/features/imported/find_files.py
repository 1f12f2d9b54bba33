"""Find the files of numbers that a user names: files, folders and patterns."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalestudy.features.imported.file_rows import printable_name
from scalestudy.util.errors import UserError
from scalestudy.util.printable import printable


def paths_of(sources: Sequence[str]) -> dict[Path, bool]:
    """Return each file to read once, in order, and whether the user named it.

    Raises:
        UserError: A source does not exist, or is a pipe, a device, an empty folder or a folder of a study.
    """
    paths: dict[Path, tuple[Path, bool]] = {}
    for source in sources:
        for path, is_named in _files(source):
            # Patterns and folders may name a file twice; the first name is the one that messages use.
            paths.setdefault(path.resolve(), (path, is_named))
    return dict(paths.values())


def _files(source: str) -> list[tuple[Path, bool]]:
    # Patterns are written in quotes, in which the shell expands neither `*` nor `~`.
    path = Path(source).expanduser()
    if path.is_file():
        return [(path, True)]
    # Opening a pipe would block until someone writes into it.
    if path.exists() and not path.is_dir():
        seen = f"{printable(source)}, a pipe or device"
        raise UserError(
            "a file or a folder",
            seen,
            "Save its contents to a file first.",
        )
    if path.is_dir():
        found = [path]
    else:
        found = list(map(Path, glob.glob(str(path), recursive=True)))
    if not found:
        raise UserError(
            "a file that exists",
            printable(source),
            "Correct the name after --from.",
        )
    files: list[Path] = []
    for match in sorted(found, key=_in_order):
        inside = [match]
        if match.is_dir():
            inside = _files_in(match)
        files += filter(Path.is_file, inside)
    if not files:
        raise UserError(
            "a folder with files",
            f"none in {printable(source)}",
            "Name another with --from.",
        )
    return [(file, False) for file in files]


def _files_in(folder: Path) -> list[Path]:
    """Return all files below a folder that are not hidden."""
    # Its records would be read as numbers of an unknown program, without what a study knows of itself.
    if (folder / "study.json").exists():
        seen = f"{printable(str(folder))}, the folder of a study"
        action = "Compare them: scalestudy compare FILE DIR"
        raise UserError("numbers measured elsewhere after --from", seen, action)
    visible = []
    for path in folder.rglob("*"):
        inside = path.relative_to(folder)
        if not any(part.startswith(".") for part in inside.parts):
            visible.append(inside)
    visible.sort(key=_in_order)
    return [folder / path for path in visible]


def _in_order(path: Path) -> tuple[Any, ...]:
    """Sort key of files: `log_8` comes before `log_10`."""
    return path.parts[:-1], len(path.name), path.name


def labels_of(paths: Sequence[Path]) -> list[str]:
    """Return distinct labels: file names if they differ, else relative paths."""
    short = [path.name for path in paths]
    if len(set(short)) == len(short):
        return [printable_name(name) for name in short]
    absolute = [path.absolute() for path in paths]
    root = os.path.commonpath([path.parent for path in absolute])
    labels = []
    for path in absolute:
        relative = os.path.relpath(path, root)
        labels.append(printable(relative))
    return labels
