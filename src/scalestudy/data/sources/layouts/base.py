"""What a layout is: how a folder is recognised by its names, and which samples then lie in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from scalestudy.data.images.masks import Mask
from scalestudy.data.sources.files import Directory, LeftOut, Leftovers
from scalestudy.data.sources.names import SPLITS, split_of
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Ranges
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class ListedSample:
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

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that it is made from."""
        return (self.image, *(() if isinstance(self.target, str) else self.target.files))


@dataclass(frozen=True)
class Listing:
    """The samples of a folder, and what was understood of it.

    Attributes:
        samples: At least one. A layout need not sort them by their split.
        understood: What tells this layout, in words: "images/ and masks/, paired by name".
        classes: Names of the classes in their order, where the layout knows them; else they are told from the
            samples' names, or from the values in masks.
        index_names: Names of the classes by their index in masks, where the folder brings them.
        sources: Further files that decide what is read, such as tables.
        given: Rows (start, stop) of each split that the folder brings; empty without.
        left_out: What lies in the folder and is not taken.
    """

    samples: list[ListedSample]
    understood: str
    classes: list[str] | None = None
    index_names: tuple[str, ...] = ()
    sources: list[Path] = field(default_factory=list)
    given: Ranges = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def kind(self) -> Kind:
        """What the samples are."""
        return "classes" if isinstance(self.samples[0].target, str) else "masks"

    @property
    def groups(self) -> list[str] | None:
        """For each sample the group that it belongs to; None where no sample has one."""
        if not any(sample.group for sample in self.samples):
            return None
        return [sample.group or sample.image.as_posix() for sample in self.samples]

    def only(self, rows: Sequence[int], given: Ranges) -> "Listing":
        """The listing of these samples alone, with where they stand by split."""
        return replace(self, samples=[self.samples[row] for row in rows], given=given)

    def files(self) -> list[Path]:
        """Every file that decides what is read, once."""
        return list(dict.fromkeys([file for sample in self.samples for file in sample.files] + self.sources))


@dataclass(frozen=True)
class Scan:
    """A folder that samples are looked for in; `left` is told what is left out."""

    root: Directory
    data: DataSettings
    left: Leftovers

    @cached_property
    def parts(self) -> dict[str, Directory]:
        """Folders of the splits ("train" first), or the folder itself as "".

        Raises:
            UserError: two folders for one split, or no training folder beside the others.
        """
        folders: dict[str, list[Directory]] = {}
        for name, folder in self.root.folders.items():
            if split := split_of(name):
                folders.setdefault(split, []).append(folder)
        if not folders or "images" in map(str.lower, self.root.folders):
            return {"": self.root}
        for split, of_split in folders.items():
            refuse_several(of_split, f"the {split} samples", self.root, "Merge them, or move one away.")
        if "train" not in folders:
            names = ", ".join(f"{of_split[0].path.name}/" for of_split in folders.values())
            raise UserError(
                "a folder train/ beside the other splits", f"only {names} in {self.root.path}",
                "Add train/, or put the samples into one folder without splits.",
            )  # fmt: skip
        return {split: folders[split][0] for split in SPLITS if split in folders}


@dataclass(frozen=True)
class Layout:
    """A way in which people lay out their folders.

    Attributes:
        name: Its name as `layout` under [data].
        words: What such a folder holds, for messages and documentation.
        list: All samples of a folder that has it. Tells `Scan.left` what it leaves out.
        recognise: Whether a folder has it, by names alone (of tables and annotations, by their beginning):
            of each split's folder, or of the whole where `whole` is set.
        whole: Whether it tells the splits itself.
        keys: Keys of [data] that ask for it.
    """

    name: str
    words: str
    list: Callable[[Scan], Listing]
    recognise: Callable[[Directory, DataSettings], bool] = lambda *_: False
    whole: bool = False
    keys: tuple[str, ...] = ()

    def fits(self, scan: Scan) -> bool:
        """Whether the folder, or that of each split, has this layout."""
        folders = [scan.root] if self.whole else scan.parts.values()
        return all(self.recognise(folder, scan.data) for folder in folders)


def refuse_several(folders: Sequence[Directory], what: str, root: Directory, action: str) -> None:
    """Refuse more than one folder for the same thing.

    Raises:
        UserError: there are several.
    """
    if len(folders) > 1:
        names = " and ".join(f"{folder.path.relative_to(root.path).as_posix()}/" for folder in folders)
        raise UserError(f"one folder for {what}", f"{names} in {root.path}", action)
