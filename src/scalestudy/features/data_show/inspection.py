"""Inspect a data set before training: how its source was read, its classes and sizes, and warnings."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.app.follow import Listener
from scalestudy.config.settings import DataSettings
from scalestudy.data.images import pictures
from scalestudy.data.samples import IGNORE, Array, Kind, Sample, Size
from scalestudy.data.sources.locate import find_whole
from scalestudy.data.sources.source import Contents, Source, findings_of
from scalestudy.data.split import SIDES
from scalestudy.util.errors import UserError

SIDE = 320
"""Longer side of a picture, in pixels."""
_TYPES = {
    "masks": "segmentation: images with masks",
    "classes": "classification: one class for each image",
}


@dataclass(frozen=True)
class DataWarning:
    """A possible mistake in a data set.

    Attributes:
        title: What was found, with the number of samples.
        samples: The samples, groups of equal samples or classes concerned.
        serious: Whether results become wrong, rather than only worse.
    """

    name: str
    title: str
    action: str
    samples: tuple[str, ...] = ()
    serious: bool = False


@dataclass(frozen=True)
class ClassCount:
    """The frequency of a class.

    Attributes:
        samples: Number of samples of the class, or with the class in their mask.
        share: Share of the samples, or of all labelled pixels of masks.
        splits: Number of samples by split, for splits that the source gives.
    """

    name: str
    samples: int
    share: float
    splits: dict[str, int]


@dataclass(frozen=True)
class SamplePicture:
    """A picture of a sample.

    Attributes:
        about: Size of the sample, and its class or the classes in its mask, in words.
        image: RGB, uint8 [h, w, 3].
        overlay: The image with its mask as an overlay; None without a mask.
    """

    name: str
    about: str
    image: npt.NDArray[np.uint8]
    overlay: npt.NDArray[np.uint8] | None


@dataclass(frozen=True)
class Inspection:
    """The results of inspecting a data set.

    Attributes:
        facts: How the source was read, by heading.
        splits: Number of samples by split; empty if the source gives none.
        sizes: Height and width, number of images, and the first of them; the most frequent size first.
    """

    source: str
    kind: Kind
    facts: dict[str, str]
    count: int
    splits: dict[str, int]
    sizes: list[tuple[Size, int, str]]
    classes: list[ClassCount]
    warnings: list[DataWarning]
    pictures: list[SamplePicture]

    def as_json(self) -> dict[str, Any]:
        """Return everything except the pictures as JSON types."""
        # Without them before `asdict`, which copies every array.
        fields = asdict(replace(self, pictures=[]))
        del fields["pictures"]
        sizes = []
        for (height, width), images, first in self.sizes:
            size = {"height": height, "width": width, "images": images, "first": first}
            sizes.append(size)
        fields["sizes"] = sizes
        return fields


@dataclass
class _Seen:
    """What is kept of images and targets, each of which is read once.

    Attributes:
        alike: Rows by the digest of their image.
        labels: Number of pixels, or of samples with classes, by class.
        samples_of: Number of samples by split ("" for none) and class.
        empty: Rows of masks without any labelled pixel.
        chosen: Rows to be pictured.
    """

    alike: dict[bytes, list[int]] = field(default_factory=dict)
    labels: Counter[int] = field(default_factory=Counter)
    samples_of: Counter[tuple[str, int]] = field(default_factory=Counter)
    empty: list[int] = field(default_factory=list)
    chosen: dict[int, Sample] = field(default_factory=dict)

    def add(
        self,
        row: int,
        image: Array,
        target: Array | int,
        split: str,
        kind: Kind,
    ) -> None:
        """Count a row's labels, and compare its image with those before."""
        # Shape and type as well: images of other sizes may have the same bytes.
        digest = hashlib.sha256(repr((image.shape, image.dtype.str)).encode())
        digest.update(np.ascontiguousarray(image).data)
        self.alike.setdefault(digest.digest(), []).append(row)
        of_row = np.bincount(np.asarray(target).ravel())
        present = np.flatnonzero(of_row).tolist()
        for label in present:
            self.labels[label] += int(of_row[label])
            self.samples_of[split, label] += 1
        # Class 0 of masks is the background.
        if kind == "masks" and not set(present) - {0, IGNORE}:
            self.empty.append(row)


def inspect_data(
    data: DataSettings,
    kind: Kind | None = None,
    base: Path = Path(),
    *,
    samples: int = 8,
    listener: Listener | None = None,
) -> Inspection:
    """Inspect every image of a source, in its own size.

    `kind` is what a task needs; another kind is an error. Relative paths begin at `base`. `samples` is the
    number of pictures.

    Raises:
        UserError: The source is missing, of another kind or damaged.
    """
    source = find_whole(data, base=base)
    if source.kind == "custom" or kind not in (None, source.kind):
        wanted = _TYPES.get(kind or "", "images")
        held = _TYPES.get(source.kind, "what a task reads itself")
        raise UserError(
            f"a set to show, of {wanted}",
            f"{source.identity}, which holds {held}",
            "Name another source; `scalestudy data prepare` describes what a task reads.",
        )
    contents = source.contents()
    count = contents.count
    names = contents.names or [str(row) for row in range(count)]
    split_of = [""] * count
    for split, (start, stop) in contents.given.items():
        split_of[start:stop] = [split] * (stop - start)
    # Spread over the whole set, whose rows are often sorted by class.
    spread = np.linspace(0, count - 1, min(samples, count))
    pictured = set(spread.round().astype(int).tolist())
    seen = _Seen()
    with (listener or Listener()).progress(f"Looking at {data.source}") as on_progress:
        for row, (image, target) in enumerate(source.rows()):
            seen.add(row, image, target, split_of[row], source.kind)
            if row in pictured:
                seen.chosen[row] = image, target
            on_progress(row + 1, count)
    splits = {}
    for split in SIDES:
        if split in split_of:
            splits[split] = split_of.count(split)
    classes = _classes(source.class_names(), seen, list(splits))
    # Arrays have one size for all.
    size_of = contents.sizes or [contents.input_shape[:2]] * count
    sizes = []
    for size, images in Counter(size_of).most_common():
        first = size_of.index(size)
        sizes.append((size, images, names[first]))
    labelled = _with_splits(names, split_of)
    across, within = _copies(seen.alike.values(), labelled, split_of, contents.groups)
    empty = [labelled[row] for row in seen.empty]
    warnings = _warnings_of(classes, across, within, empty)
    for doubt in findings_of(source).doubts:
        warnings.append(DataWarning(doubt.name, doubt.title, doubt.action))
    if len(sizes) > 1 and not data.image_size and not data.tile:
        warnings.append(_sizes_differ(sizes, source.kind))
    class_names = [of_class.name for of_class in classes]
    shown = []
    for row, (image, target) in sorted(seen.chosen.items(), key=lambda item: item[0]):
        shown.append(_picture(names[row], image, target, class_names))
    return Inspection(
        source=str(data.source),
        kind=source.kind,
        facts=_facts(data, source, contents),
        count=count,
        splits=splits,
        sizes=sizes,
        classes=classes,
        warnings=warnings,
        pictures=shown,
    )


def _with_splits(names: Sequence[str], split_of: Sequence[str]) -> list[str]:
    """Return the names of samples, each with its split if the source gives one."""
    labelled = []
    for name, split in zip(names, split_of, strict=True):
        if split:
            labelled.append(f"{name} ({split})")
        else:
            labelled.append(name)
    return labelled


def _facts(data: DataSettings, source: Source, contents: Contents) -> dict[str, str]:
    """Return how a source was read, by heading; headings without anything to say are left out."""
    findings = findings_of(source)
    groups = ""
    if contents.groups:
        groups = f"{len(set(contents.groups)):,}, which a split keeps whole"
    left_out = map(str, findings.left_out)
    facts = {
        "Type": _TYPES[source.kind],
        "Understood": findings.understood,
        "Files": contents.formats or "",
        "Groups": groups,
        "Split": _split(data, set(contents.given)),
        "Remarks": "; ".join([*findings.remarks, *left_out]),
    }
    return {heading: text for heading, text in facts.items() if text}


def _classes(
    names: Sequence[str],
    seen: _Seen,
    splits: Sequence[str],
) -> list[ClassCount]:
    """Return the frequency of each class; `splits` are those that the source gives."""
    # Labels beyond the classes, as the value to ignore, are not counted.
    total = sum(seen.labels[index] for index in range(len(names)))
    classes = []
    for index, name in enumerate(names):
        share = seen.labels[index] / max(total, 1)
        samples = sum(seen.samples_of[split, index] for split in ("", *SIDES))
        by_split = {}
        for split in splits:
            by_split[split] = seen.samples_of[split, index]
        classes.append(ClassCount(name, samples, share, by_split))
    return classes


def _split(data: DataSettings, given: set[str]) -> str:
    if data.validation in (None, "given") and not given <= {"train"}:
        return "given by the source"
    if "test" in given:
        return "random, by the seed, with the test set of the source"
    return "random, by the seed"


def _copies(
    alike: Iterable[list[int]],
    names: Sequence[str],
    split_of: Sequence[str],
    groups: Sequence[str] | None,
) -> tuple[list[str], list[str]]:
    """Return images with equal pixels: in several splits, and in one split but not in one group."""
    across = []
    within = []
    for rows in alike:
        splits = set()
        # A split keeps a group whole, so its copies stay on one side.
        separable = set()
        for row in rows:
            splits.add(split_of[row])
            if groups:
                separable.add(groups[row])
            else:
                separable.add(str(row))
        shown = " = ".join([names[row] for row in rows])
        if len(splits) > 1:
            across.append(shown)
        elif len(separable) > 1:
            within.append(shown)
    return across, within


def _warnings_of(
    classes: Sequence[ClassCount],
    across: list[str],
    within: list[str],
    empty: list[str],
) -> list[DataWarning]:
    missing = []
    # A class that no training sample has is never predicted.
    untrained = False
    for count in classes:
        without = [split for split, samples in count.splits.items() if not samples]
        if without:
            missing.append(f"{count.name} ({', '.join(without)})")
        if "train" in without:
            untrained = True
    found = (
        (
            "duplicate-across-splits",
            across,
            "images in more than one split, pixel for pixel",
            "Quality would be measured on what was trained on: remove the copies.",
            True,
        ),
        (
            "class-missing-in-split",
            missing,
            "classes that a split does not hold",
            "Create the split again, or add samples of the class.",
            untrained,
        ),
        (
            "duplicate",
            within,
            "images more than once, pixel for pixel",
            "Remove the copies: a random split may separate them, so that quality looks better than it is.",
            False,
        ),
        (
            "empty-mask",
            empty,
            "masks without any labelled pixel",
            "Right where there is nothing to see; otherwise the mask is missing or was saved empty.",
            False,
        ),
    )
    # What makes results wrong comes first.
    warnings = []
    for name, samples, title, action, serious in found:
        if samples:
            counted = f"{len(samples):,} {title}"
            warnings.append(DataWarning(name, counted, action, tuple(samples), serious))
    return warnings


def _sizes_differ(sizes: Sequence[tuple[Size, int, str]], kind: Kind) -> DataWarning:
    (height, width), _, _ = sizes[0]
    tiles = ""
    # An image with one class has no class in each of its tiles.
    if kind == "masks":
        tiles = ", or `tile`, which cuts them"
    return DataWarning(
        "sizes-differ",
        f"{len(sizes)} sizes of images, while a model needs one",
        f"Write `image_size` under [data], such as [{height}, {width}], with `fit`{tiles}.",
    )


def _picture(
    name: str,
    image: Array,
    target: Array | int,
    classes: list[str],
) -> SamplePicture:
    size = f"{image.shape[0]} x {image.shape[1]}"
    rgb = pictures.to_rgb(image)
    small = pictures.within(rgb, SIDE)
    if not isinstance(target, np.ndarray) or target.ndim == 0:
        return SamplePicture(name, f"{size}, {classes[int(target)]}", small, None)
    counts = np.bincount(target.ravel(), minlength=256)
    shares = []
    for index in np.flatnonzero(counts[:IGNORE]):
        share = counts[index] / target.size
        shares.append(f"{classes[index]}: {share:.1%}")
    labelled = ", ".join(shares) or "nothing labelled"

    overlay = pictures.within(pictures.overlay(rgb, target), SIDE)
    return SamplePicture(name, f"{size}, {labelled}", small, overlay)
