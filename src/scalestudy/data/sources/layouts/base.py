"""What a layout is: how a folder is recognised by its names, and which samples then lie in it."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from scalestudy.data.images.masks import Mask
from scalestudy.data.sources.files import is_image_name, is_system_name
from scalestudy.data.sources.layouts.names import in_order, parts
from scalestudy.data.sources.left_out import Leftovers
from scalestudy.study.settings import DataSettings

_PARTS = re.compile(r"(\d+)")


class Look:
    """A folder's visible folders and files; links count as what they lead to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def folders(self) -> dict[str, "Look"]:
        """Folders by name, numbers in their own order."""
        return {name: Look(self.path / name) for name in sorted(self._scanned[0], key=in_order)}

    @property
    def files(self) -> list[str]:
        """Names of all that is no folder, sorted."""
        return self._scanned[1]

    @cached_property
    def images(self) -> list[str]:
        """Names of files that are images by their name, sorted."""
        return [name for name in self.files if is_image_name(name)]

    @cached_property
    def _scanned(self) -> tuple[list[str], list[str]]:
        folders: list[str] = []
        files: list[str] = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                if not is_system_name(entry.name):
                    (folders if entry.is_dir() else files).append(entry.name)
        return folders, sorted(files)


def numbers(text: str) -> tuple[int, ...]:
    """All whole numbers in a text."""
    return tuple(map(int, _PARTS.findall(text)))


@dataclass(frozen=True)
class Item:
    """One sample of a folder.

    Attributes:
        image: Its file.
        target: The name of its class, or its mask.
        split: "train", "validation" or "test", where the folder says so; "" elsewhere.
        group: What it belongs to together with others, where the folder says so.
    """

    image: Path
    target: str | Mask
    split: str = ""
    group: str | None = None


@dataclass(frozen=True)
class Scan:
    """A folder that samples are looked for in.

    Attributes:
        root: The folder.
        data: How it is read; says what names alone do not.
        left: Is told what is left out.
    """

    root: Look
    data: DataSettings
    left: Leftovers

    @cached_property
    def parts(self) -> dict[str, Look]:
        """Folders of the splits ("train" first), or the folder itself as "".

        Raises:
            UserError: two folders for one split, or no training folder beside the others.
        """
        folders = parts(self.root.path)
        return {split: self.root if not split else Look(path) for split, path in folders.items()}


@dataclass(frozen=True)
class Listed:
    """The samples of a folder, and what was understood of it.

    Attributes:
        items: At least one; a layout need not sort them by their split.
        understood: What tells this layout, in words: "images/ and masks/, paired by name".
        classes: Names of the classes in their order, where the layout knows them; else they are told from the
            items' names, or from the values in masks.
        sources: Further files that decide what is read, such as tables.
        known_after: What more is known once all masks were read, in words; or "".
    """

    items: list[Item]
    understood: str
    classes: list[str] | None = None
    sources: list[Path] = field(default_factory=list)
    known_after: Callable[[], str] = str


@dataclass(frozen=True)
class Layout:
    """A way in which people lay out their folders.

    Attributes:
        name: Its name as `layout` under [data].
        words: What such a folder holds, for messages and documentation.
        recognise: Whether a folder has it, by names alone (of tables and annotations, by their beginning):
            of each split's folder, or of the whole where `whole` is set.
        list: All samples of a folder that has it. Tells `Scan.left` what it leaves out.
        whole: Whether it tells the splits itself.
    """

    name: str
    words: str
    recognise: Callable[[Look, DataSettings], bool]
    list: Callable[[Scan], Listed]
    whole: bool = False
