"""Find the layout of a folder, and list its samples with their order, groups and classes."""

from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.config.settings import DataSettings
from scalestudy.data.left_out import LeftOut
from scalestudy.data.samples import Kind, Ranges
from scalestudy.data.sources.beside import beside, columns_beside
from scalestudy.data.sources.classes import (
    list_classes,
    list_labels,
    refuse_masks_among,
    search,
)
from scalestudy.data.sources.couples import find_couple
from scalestudy.data.sources.files import (
    SPLITS,
    ListedSample,
    Tree,
    composed,
    in_order,
    role,
)
from scalestudy.data.sources.labels import TABLES, column_names, columns_of, list_table
from scalestudy.data.sources.pairs import find_pairs, list_patterns
from scalestudy.data.sources.source import COLUMNS, refuse_unused
from scalestudy.util.errors import UserError

_SPLITS = ("", *SPLITS)
_PATTERNS = ("images", "masks", "label_pattern")
"""Keys of [data] that say where samples are in a folder."""


@dataclass(frozen=True)
class Listing:
    """The samples of a folder, and how its layout was interpreted.

    Attributes:
        samples: Samples in the order train, validation, test.
        understood: The interpretation in words: "images/ and masks/, paired by name".
        classes: Class names in order for samples with classes; empty for masks.
        given: Rows (start, stop) of each split that the folder defines; may be empty.
        left_out: Files in the folder that are skipped.
        table: The table that names the samples, if one does.
    """

    samples: list[ListedSample]
    understood: str
    classes: list[str]
    given: Ranges
    left_out: tuple[LeftOut, ...]
    table: Path | None

    @property
    def kind(self) -> Kind:
        """Kind of the samples."""
        return "classes" if isinstance(self.samples[0].target, str) else "masks"

    @property
    def groups(self) -> list[str] | None:
        """Group of each sample; None if they have none."""
        if not self.samples[0].group:
            return None
        return [sample.group for sample in self.samples]

    def files(self) -> list[Path]:
        """Return all files that determine the samples, each once."""
        files: dict[Path, None] = {}  # samples may share a file
        for sample in self.samples:
            files.update(dict.fromkeys(sample.files))
        if self.table is not None:
            files[self.table] = None
        return list(files)


def list_samples(source: Path, data: DataSettings) -> Listing:
    """Find the layout of a folder by its names, or read a table, and list the samples.

    Raises:
        UserError: If no layout or several layouts fit, if a class is not in the training samples, if splits
            lack training samples, or if a name has no group or is not valid UTF-8.
    """
    tree = Tree.of(source if source.is_dir() else source.parent)
    table = None
    if source.is_file():
        refuse_unused(data, _PATTERNS, f"the table {source}")
        columns = columns_of(source, data)
        if columns is None:
            raise UserError(
                "a table with a column of files (file, image_id, ...) and one of classes (label, ...)",
                f"{source}, with {column_names(source)}",
                columns_beside(source, tree),
            )
        table = source
        samples, understood = list_table(source, columns, tree)
    elif data.images is not None or data.masks is not None:
        refuse_unused(data, ("label_pattern",), "images and masks of patterns")
        samples, understood = list_patterns(tree, data)
    elif data.label_pattern is not None:
        refuse_unused(data, ("colours",), "images with classes")
        samples, understood = list_labels(tree, data.label_pattern)
    else:
        samples, understood, table = _recognise(tree, data)
    if table is None:
        refuse_unused(data, COLUMNS, f"{source}: {understood}")
    return _finish(samples, understood, tree, data, table)


def _recognise(
    tree: Tree, data: DataSettings
) -> tuple[list[ListedSample], str, Path | None]:
    """List the samples by the only layout that fits."""
    tables = []
    for file in tree.others:
        if file.parent != tree.root or file.suffix.lower() not in TABLES:
            continue
        columns = columns_of(file, data)
        if columns is not None:
            tables.append((file, columns))
    pairs = find_pairs(tree)
    if not (pairs or tables):
        pairs = find_couple(tree)
    if pairs and not tables:
        return *pairs.list(), None
    samples, understood = list_classes(tree)
    if tables and not any(getattr(data, key) for key in COLUMNS):
        # Folders beside a table are classes only if there are several, with names of no other meaning.
        targets = {str(sample.target) for sample in samples}
        classes = []
        for name in targets:
            if role(name) == (None, None):
                classes.append(name)
        if pairs or len(classes) > 1 or len(tables) > 1:
            beside_it = "another table" if len(tables) > 1 else "folders of images"
            first, _ = tables[0]
            raise UserError(
                "a folder with one possible layout",
                f"{tree}, with {first.name} beside {beside_it}",
                f'Name the table as the source: source = "{first}"; or move it away.',
            )
    if tables:
        file, columns = tables[0]
        return *list_table(file, columns, tree), file
    targets = {str(sample.target) for sample in samples}
    if len(targets) == 1:
        raise UserError(
            "samples of at least 2 classes",
            f"only the class {targets.pop()!r} in {tree}",
            beside(tree, lambda other: _reading(other, data)),
        )
    if samples:
        refuse_masks_among(tree, samples)
        return samples, understood, None
    raise UserError(
        "a folder with images/ and masks/ whose files pair by name, a folder of images for each class "
        "(either, if you like, inside train/, val/ and test/), or another of the layouts in "
        "`scalestudy docs reference/data`",
        str(tree),
        beside(tree, lambda other: _reading(other, data)),
    )


def _reading(tree: Tree, data: DataSettings) -> str | None:
    """Return how another folder is understood; None if it is refused."""
    try:
        pairs = find_pairs(tree) or find_couple(tree)
        samples, understood = pairs.list() if pairs else list_classes(tree)
        if not samples:
            return None
        _finish(samples, understood, tree, data, None)
    except UserError:
        return None
    return understood


def _finish(
    samples: list[ListedSample],
    understood: str,
    tree: Tree,
    data: DataSettings,
    table: Path | None,
) -> Listing:
    """Sort samples by split, add their groups, and check their splits and classes."""
    if not samples:
        raise UserError(
            "samples",
            f"none in {tree.root} ({understood})",
            "Add rows or files.",
        )
    for sample in samples:
        name = str(sample.image)
        # Python reads bytes that are no UTF-8 as surrogates.
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise UserError(
                "file names in UTF-8",
                ascii(name),
                "Rename the file, for example with convmv.",
            )
    # A stable sort: inside a split, samples keep their order.
    samples = sorted(samples, key=lambda sample: _SPLITS.index(sample.split))
    given = _given(samples, tree.root)
    if data.group_pattern is not None:
        samples = [_group(sample, data.group_pattern, tree.root) for sample in samples]
    classes: list[str] = []
    if isinstance(samples[0].target, str):
        classes = _classes(samples)
    taken: set[Path] = set()
    if table is not None:
        taken.add(table)
    for sample in samples:
        taken.update(sample.files)
    left_out = tree.left_out(taken)
    return Listing(samples, understood, classes, given, left_out, table)


def _given(samples: list[ListedSample], root: Path) -> Ranges:
    """Return the rows of each split; refuse splits without training samples or samples without split."""
    splits = [sample.split for sample in samples]
    names = dict.fromkeys(splits)
    if any(names) and ("train" not in names or "" in names):
        found = " and ".join(name or "some of no split" for name in names)
        raise UserError(
            "training samples besides the other splits, or samples without splits",
            f"{found} in {root}",
            "Put all samples into folders of splits, some of them into train/, or into none.",
        )
    given = {}
    for split in filter(None, names):
        start = splits.index(split)  # samples are sorted by split
        given[split] = (start, start + splits.count(split))
    return given


def _classes(samples: list[ListedSample]) -> list[str]:
    """Return the sorted classes of the first split; refuse any others."""
    first = samples[0].split
    of_first = set()
    for sample in samples:
        if sample.split == first:
            of_first.add(str(sample.target))
    names = sorted(of_first, key=in_order)
    for sample in samples:
        # A class that no training sample has cannot be learned.
        if sample.target not in names:
            raise UserError(
                f"the classes of train/ ({', '.join(names)})",
                f"{sample.image} of {sample.target!r}",
                "Rename that class, or add samples of it to train/.",
            )
    return names


def _group(sample: ListedSample, pattern: str, root: Path) -> ListedSample:
    name = sample.image.relative_to(root).as_posix()
    group = search(pattern, composed(name))
    if not group:
        raise UserError(
            f"a group in every name, as group_pattern = {pattern!r} finds it",
            f"{name}, in which it finds nothing",
            "Correct the pattern: what its first brackets (or all of it) match is the group.",
        )
    return replace(sample, group=group)
