"""What is predicted: files and rows of data sets, each with a name for what is written of it."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.data.images import suffixes
from scalestudy.data.sources.files import is_system
from scalestudy.util.errors import UserError

MASKS = "masks"
"""A folder of this name beside images/ holds masks, which are not predicted."""


@dataclass(frozen=True)
class Item:
    """One image.

    Attributes:
        shown: How it is named in tables and messages: its file, or the row of its source.
        name: Path of what is written of it, below a folder and without suffix.
        file: Its file; None for a row of a prepared data set.
        row: Its row there.
    """

    shown: str
    name: str
    file: str | None = None
    row: int | None = None


def files_of(arguments: Sequence[Path]) -> tuple[list[Item], list[Path]]:
    """Image files that were named, or lie in folders that were, in their order; and folders left out.

    Raises:
        UserError: If one does not exist, a folder holds no images, or two would be written under one name.
    """
    found: list[tuple[Path, Path, str]] = []
    left: list[Path] = []
    for argument in arguments:
        if argument.is_dir():
            files, masks = _below(argument)
            left += masks
            if not files:
                raise UserError(
                    "a folder with PNG, JPEG or TIFF images", f"{argument}, without any", "Name another one."
                )
            found += [(file, file.relative_to(argument), argument.name) for file in files]
        elif argument.exists():
            found.append((argument, Path(argument.name), argument.parent.name))
        else:
            raise UserError(
                "images, folders of images or a source of data",
                f"{argument}, which does not exist",
                "Correct its name; a pattern such as 'images/*.png' is taken too.",
            )
    unique = list({os.path.realpath(file): (file, below, of) for file, below, of in found}.values())
    return _named(unique), left


def rows_of(source: str, names: Sequence[str]) -> list[Item]:
    """The rows of a prepared data set."""
    label = Path(source.replace(":", "-")).stem
    digits = len(str(len(names) - 1))
    return [
        Item(
            f"{source}: {name}",
            Path(name).with_suffix("").as_posix()
            if Path(name).suffix
            else f"{label}-{int(name):0{digits}d}"
            if name.isdecimal()
            else name,
            row=row,
        )
        for row, name in enumerate(names)
    ]


def _below(folder: Path) -> tuple[list[Path], list[Path]]:
    """Image files anywhere below a folder, in order; and folders of masks, which are left out."""
    files: list[Path] = []
    left: list[Path] = []
    for at, folders, names in os.walk(folder):
        here = Path(at)
        beside = {name.lower() for name in folders}
        masks = [name for name in folders if name.lower() == MASKS and "images" in beside]
        left += [here / name for name in masks]
        folders[:] = sorted(name for name in folders if name not in masks and not is_system(Path(name)))
        files += [
            here / name
            for name in sorted(names)
            if Path(name).suffix.lower() in suffixes.READ and not is_system(Path(name))
        ]
    return files, left


def _named(found: Sequence[tuple[Path, Path, str]]) -> list[Item]:
    """Names that differ: of files that only their suffix tells apart with it, then with their folder's."""
    ways: list[Callable[[Path, str], Path]] = [
        lambda below, of: below.with_suffix(""),
        lambda below, of: below,
        lambda below, of: Path(of) / below,
    ]
    names: list[Path] = [ways[0](below, of) for _, below, of in found]
    for way in ways[1:]:
        taken = Counter(names)
        names = [
            way(below, of) if taken[name] > 1 else name
            for name, (_, below, of) in zip(names, found, strict=True)
        ]
    for name, many in Counter(names).items():
        if many > 1:
            twice = [str(file) for (file, _, _), each in zip(found, names, strict=True) if each == name]
            raise UserError(
                "images of which each has a name of its own",
                f"{' and '.join(twice[:3])}, which would all be written as {name}",
                "Predict them one folder after another, each with its own --out.",
            )
    return [
        Item(str(file), name.as_posix(), file=str(file.absolute()))
        for (file, _, _), name in zip(found, names, strict=True)
    ]
