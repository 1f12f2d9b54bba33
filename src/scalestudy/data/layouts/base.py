"""What a layout is: how a folder is recognised by its names, and which samples then lie in it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from scalestudy.data import layout
from scalestudy.data.layouts.look import Look
from scalestudy.data.left_out import Leftovers
from scalestudy.data.masks import Mask
from scalestudy.study.settings import DataSettings


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
        found = layout.parts(self.root.path)
        return {split: self.root if not split else Look(path) for split, path in found.items()}


@dataclass(frozen=True)
class Listed:
    """The samples of a folder, and what was understood of it.

    Attributes:
        items: At least one; a layout need not sort them by their split.
        understood: What tells this layout, in words: "images/ and masks/, paired by name".
        classes: Names of the classes in their order, where the layout knows them; else they are told from the
            items' names, or from the values in masks.
        sources: Further files that decide what is read, such as tables.
        told_after: What more is known once all masks were read, in words; or "".
    """

    items: list[Item]
    understood: str
    classes: list[str] | None = None
    sources: list[Path] = field(default_factory=list)
    told_after: Callable[[], str] = str


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
