"""What is predicted: image files, each with a name for what is written of it."""

import glob
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from scalestudy.data.images import suffixes
from scalestudy.data.sources.files import is_system
from scalestudy.study.records import Record
from scalestudy.util.errors import UserError

MASKS = "masks"
"""A folder of this name beside images/ holds masks, which are not predicted."""


class ImageItem(Record):
    """One image.

    Attributes:
        shown: Its file as it was named, for tables and messages.
        name: Path of what is written of it, below a folder and without suffix.
        file: Its absolute path.
    """

    shown: str
    name: str
    file: str


def files_of(arguments: Sequence[str]) -> tuple[list[ImageItem], list[Path]]:
    """Image files that were named, or lie in folders that were, in their order; and folders left out.

    Raises:
        UserError: If one does not exist, a folder holds no images, or two would be written under one name.
    """
    files: list[tuple[Path, Path, str]] = []  # with their paths below what was named, and its name
    left_out: list[Path] = []
    for path in [path for argument in arguments for path in _globbed(argument)]:
        if path.is_dir():
            inside, masks = _below(path)
            left_out += masks
            if not inside:
                raise UserError(
                    "a folder with PNG, JPEG or TIFF images", f"{path}, without any", "Name another one."
                )
            files += [(file, file.relative_to(path), path.name) for file in inside]
        elif path.exists():
            files.append((path, Path(path.name), path.parent.name))
        else:
            raise UserError(
                "images or folders of images",
                f"{path}, which does not exist",
                "Correct its name; a pattern such as 'images/*.png' is taken too.",
            )
    unique = {os.path.realpath(file): (file, below, folder) for file, below, folder in files}
    return _named(list(unique.values())), left_out


def _globbed(argument: str) -> list[Path]:
    """A path, or what a pattern stands for that the shell has left."""
    if not glob.has_magic(argument) or Path(argument).exists():
        return [Path(argument)]
    paths = sorted(glob.glob(argument, recursive=True))
    if not paths:
        raise UserError("a pattern that fits some images", f"{argument}, which fits none", "Correct it.")
    return [Path(path) for path in paths]


def _below(folder: Path) -> tuple[list[Path], list[Path]]:
    """Image files anywhere below a folder, in order; and folders of masks, which are left out."""
    files: list[Path] = []
    left_out: list[Path] = []
    for path, folders, names in os.walk(folder):
        beside = {name.lower() for name in folders}
        masks = [name for name in folders if name.lower() == MASKS and "images" in beside]
        left_out += [Path(path, name) for name in masks]
        folders[:] = sorted(name for name in folders if name not in masks and not is_system(Path(name)))
        files += [
            Path(path, name)
            for name in sorted(names)
            if Path(name).suffix.lower() in suffixes.READ and not is_system(Path(name))
        ]
    return files, left_out


def _named(files: Sequence[tuple[Path, Path, str]]) -> list[ImageItem]:
    """Names that differ: of files that only their suffix tells apart with it, then with their folder's."""
    names = [below.with_suffix("") for _, below, _ in files]
    longer = [below for _, below, _ in files], [Path(folder) / below for _, below, folder in files]
    for others in longer:
        taken = Counter(names)
        names = [other if taken[name] > 1 else name for name, other in zip(names, others, strict=True)]
    for name, count in Counter(names).items():
        if count > 1:
            same = [str(file) for (file, _, _), other in zip(files, names, strict=True) if other == name]
            raise UserError(
                "images of which each has a name of its own",
                f"{' and '.join(same[:3])}, which would all be written as {name}",
                "Predict them one folder after another, each with its own --out.",
            )
    return [
        ImageItem(shown=str(file), name=name.as_posix(), file=str(file.absolute()))
        for (file, _, _), name in zip(files, names, strict=True)
    ]
