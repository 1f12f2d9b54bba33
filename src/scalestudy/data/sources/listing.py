"""The interface of layouts: recognise a folder by its names, and list its samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.masks import Mask
from scalestudy.data.samples import Kind, Ranges
from scalestudy.data.sources.files import SPLITS, Directory, LeftOut, Leftovers, split_of
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class ListedSample:
    """One sample of a folder.

    Attributes:
        target: Name of the class, or the mask.
        split: "train", "validation" or "test" if the folder defines it, else "".
        group: Group of related samples if the folder defines it, else None.
    """

    image: Path
    target: str | Mask
    split: str = ""
    group: str | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All files of the sample."""
        return (self.image, *(() if isinstance(self.target, str) else self.target.files))


@dataclass(frozen=True)
class Listing:
    """The samples of a folder, and how its layout was interpreted.

    Attributes:
        samples: At least one sample. A layout need not sort them by split.
        understood: The interpretation in words: "images/ and masks/, paired by name".
        classes: Class names in order, if the layout defines them. Otherwise they follow from the samples'
            targets, or from the values in masks.
        index_names: Class names by index in masks, if the folder defines them.
        sources: Further files that determine the samples, such as tables.
        given: Rows (start, stop) of each split that the folder defines; may be empty.
        left_out: Files in the folder that are skipped.
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
        """Kind of the samples."""
        return "classes" if isinstance(self.samples[0].target, str) else "masks"

    @property
    def groups(self) -> list[str] | None:
        """Group of each sample; None if no sample has one."""
        if not any(sample.group for sample in self.samples):
            return None
        return [sample.group or sample.image.as_posix() for sample in self.samples]

    def only(self, rows: Sequence[int], given: Ranges) -> "Listing":
        """Return the listing with only these rows; `given` are their new ranges by split."""
        return replace(self, samples=[self.samples[row] for row in rows], given=given)

    def files(self) -> list[Path]:
        """Return all files that determine the samples, each once."""
        return list(dict.fromkeys([file for sample in self.samples for file in sample.files] + self.sources))


@dataclass(frozen=True)
class Scan:
    """A folder to search for samples; `left` collects skipped entries."""

    root: Directory
    data: DataSettings
    left: Leftovers

    @cached_property
    def parts(self) -> dict[str, Directory]:
        """Folders of the splits ("train" first), or the folder itself as "".

        Raises:
            UserError: If there are two folders for one split, or no training folder beside the others.
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
                "a folder train/ beside the other splits",
                f"only {names} in {self.root.path}",
                "Add train/, or put the samples into one folder without splits.",
            )
        return {split: folders[split][0] for split in SPLITS if split in folders}


@dataclass(frozen=True)
class Layout:
    """A layout of folders.

    Attributes:
        name: Value of `layout` under [data].
        words: Contents of such a folder, for messages and documentation.
        list: Lists all samples of a folder with this layout, and adds skipped entries to `Scan.left`.
        recognise: Whether a folder has this layout, judged by names (tables and annotations also by their
            first bytes). Called for each split's folder, or once for the root if `whole` is set.
        whole: Whether the layout handles splits itself.
        keys: Keys of [data] that select this layout.
    """

    name: str
    words: str
    list: Callable[[Scan], Listing]
    recognise: Callable[[Directory, DataSettings], bool] = lambda *_: False
    whole: bool = False
    keys: tuple[str, ...] = ()

    def fits(self, scan: Scan) -> bool:
        """Whether the folder, or each split's folder, has this layout."""
        folders = [scan.root] if self.whole else scan.parts.values()
        return all(self.recognise(folder, scan.data) for folder in folders)


def refuse_several(folders: Sequence[Directory], what: str, root: Directory, action: str) -> None:
    """Refuse more than one folder for the same purpose; raises `UserError` if there are several."""
    if len(folders) > 1:
        names = " and ".join(f"{folder.path.relative_to(root.path).as_posix()}/" for folder in folders)
        raise UserError(f"one folder for {what}", f"{names} in {root.path}", action)
