"""Inspect a data set before training: how its source was read, its classes and sizes, and warnings.

For a prepared data set, the stored samples are read, otherwise the images of its source.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.app.follow import Listener
from scalestudy.config.settings import DataSettings
from scalestudy.data.images import pictures
from scalestudy.data.samples import IGNORE, Array, Kind, Ranges, Sample, Size
from scalestudy.data.sources.locate import find_whole
from scalestudy.data.sources.source import SourceFindings, findings_of
from scalestudy.data.split import SIDES, Fold, find_split, make_split, validation_of
from scalestudy.data.store.preparation import find_prepared
from scalestudy.data.store.prepared import Prepared
from scalestudy.features.inspect.data_warnings import ClassCount, DataWarning, Statistics, data_warnings
from scalestudy.report.document import (
    Block,
    Document,
    Items,
    Paragraph,
    Photo,
    Photos,
    Section,
    Table,
    headings_of,
)
from scalestudy.util import units
from scalestudy.util.errors import UserError

SIDE = 320
"""Longer side of a picture, in pixels."""
_TYPES = {"masks": "segmentation: images with masks", "classes": "classification: one class for each image"}
_FITTED = {"pad": "aspect kept, padded", "crop": "aspect kept, cropped", "stretch": "stretched"}


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
        basis: What was inspected, in words.
        facts: How the source was read, by heading.
        splits: Number of samples by split; empty if they are not split yet.
        sizes: Height and width, number of images, and the first of them; the most frequent size first.
    """

    source: str
    kind: Kind
    basis: str
    facts: dict[str, str]
    count: int
    splits: dict[str, int]
    sizes: list[tuple[Size, int, str]]
    classes: list[ClassCount]
    warnings: list[DataWarning]
    pictures: list[SamplePicture]

    def as_json(self) -> dict[str, Any]:
        """Return everything except the pictures as JSON types."""
        sizes = [
            {"height": size[0], "width": size[1], "images": images, "first": first}
            for size, images, first in self.sizes
        ]
        fields = asdict(replace(self, pictures=[])) | {"sizes": sizes}
        del fields["pictures"]
        return fields


@dataclass(frozen=True)
class _Set:
    """A data set during inspection; `findings` and `class_names` are valid once all rows were read."""

    kind: Kind
    basis: str
    facts: dict[str, str]
    names: Sequence[str]
    groups: Sequence[str] | None
    splits: list[str]
    sizes: Sequence[tuple[Size, int, str]]
    rows: Iterable[Sample]
    class_names: Callable[[], Sequence[str]]
    findings: Callable[[], SourceFindings]


def inspect_data(
    data: DataSettings,
    kind: Kind | None = None,
    base: Path = Path(),
    *,
    samples: int = 8,
    listener: Listener | None = None,
) -> Inspection:
    """Inspect every prepared sample of a data set, or every image of its source if it is not prepared.

    `kind` is what a task needs; another kind is an error. Relative paths begin at `base`. `samples` is the
    number of pictures.

    Raises:
        UserError: The source is missing, of another kind or damaged.
    """
    ready = find_prepared(data, task_kind=kind, base=base)
    dataset = _of_prepared(ready, data) if ready else _of_source(data, base)
    count = len(dataset.names)
    statistics = Statistics(dataset.names, dataset.groups, dataset.splits)
    pictured = set(np.linspace(0, count - 1, min(samples, count)).round().astype(int).tolist())
    chosen: dict[int, Sample] = {}
    with (listener or Listener()).progress(f"Looking at {data.source}") as on_progress:
        for row, (image, target) in enumerate(dataset.rows):
            statistics.add(image, target)
            if row in pictured:
                chosen[row] = (np.array(image), np.array(target) if np.ndim(target) else target)
            on_progress(row + 1, count)
    classes = statistics.classes(dataset.class_names(), dataset.kind)
    findings = dataset.findings()
    remarks = "; ".join([*findings.remarks, *map(str, findings.left_out)])
    facts = dataset.facts | {"Understood": findings.understood, "Remarks": remarks}
    names = [of_class.name for of_class in classes]
    return Inspection(
        source=str(data.source),
        kind=dataset.kind,
        basis=dataset.basis,
        facts={name: text for name, text in facts.items() if text},
        count=count,
        splits={split: dataset.splits.count(split) for split in SIDES if split in dataset.splits},
        sizes=list(dataset.sizes),
        classes=classes,
        warnings=[*data_warnings(statistics, dataset.kind, classes), *_sizes_to_fit(dataset, data)],
        pictures=[_picture(dataset.names[row], *chosen[row], names) for row in sorted(chosen)],
    )


def _of_prepared(ready: Prepared, data: DataSettings) -> _Set:
    """Return all samples of a prepared data set."""
    if ready.kind == "custom" or ready.scale is None:
        raise UserError(
            "a set of images to show",
            f"{ready.path}, read by the task itself: {', '.join(ready.arrays)}",
            "Read its arrays with numpy.load; `scalestudy data prepare` lists them.",
        )
    stored = find_split(ready, validation_of(data), data.seed)
    split = stored or make_split(ready, validation_of(data), data.seed)
    splits = [""] * ready.count
    for side in SIDES:
        for row in getattr(split, side):
            splits[row] = side
    height, width, channels = ready.input_shape
    scaling = "them as they are" if ready.scale == 1 else f"values divided by {1 / ready.scale:g}"
    facts = _facts(data, ready.kind, ready.formats, ready.groups, ready.given)
    facts["Stored as"] = (
        f"{ready.count:,} x {height} x {width} x {channels} {ready.inputs.dtype}, {units.size(ready.bytes)} "
        f"with targets; models see {scaling}"
    )
    if ready.given and split.quality_split == "test":
        facts["Split"] += ", quality being measured on its test set"
    if stored is None:
        facts["Split"] += "; stored by `scalestudy data prepare`"
    findings = SourceFindings(ready.left_out, understood=ready.understood, remarks=ready.remarks)
    return _Set(
        kind=ready.kind,
        basis=f"all {ready.count:,} samples, as prepared in {ready.path}",
        facts=facts,
        names=ready.names,
        groups=ready.groups,
        splits=splits,
        sizes=ready.size_counts or [((height, width), ready.count, ready.names[0])],
        rows=((np.asarray(ready.inputs[row]), np.asarray(ready.targets[row])) for row in range(ready.count)),
        class_names=lambda: ready.class_names,
        findings=lambda: findings,
    )


def _of_source(data: DataSettings, base: Path) -> _Set:
    """Return the images of a source that is not prepared."""
    source = find_whole(data, base=base)
    if source.kind == "custom":
        raise UserError(
            "a set of images to show",
            f"{source.identity}, not prepared yet",
            "Prepare it with `scalestudy data prepare`, which describes it.",
        )
    contents = source.contents()
    count = contents.count
    names = contents.names or [str(row) for row in range(count)]
    splits = [""] * count
    for split, (start, stop) in contents.given.items():
        splits[start:stop] = [split] * (stop - start)
    facts = _facts(data, source.kind, contents.formats, contents.groups, contents.given)
    if contents.given and validation_of(data) not in (None, "given"):
        facts["Split"] += " when it is prepared; shown here as given by the source"
    return _Set(
        kind=source.kind,
        basis=f"the source, not prepared yet: all {count:,} images",
        facts=facts,
        names=names,
        groups=contents.groups,
        splits=splits,
        sizes=contents.size_counts or [(contents.input_shape[:2], count, names[0])],
        rows=_first_pages(source.rows()),
        class_names=source.class_names,
        findings=lambda: findings_of(source),
    )


def _first_pages(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield samples, with only the first page of each stack."""
    for image, target in samples:
        if image.ndim == 4:
            yield image[0], target[0] if isinstance(target, np.ndarray) and target.ndim == 3 else target
        else:
            yield image, target


def _facts(data: DataSettings, kind: Kind, formats: str | None, groups: Any, given: Ranges) -> dict[str, str]:
    """Return facts by heading, in display order; "" for those that are not known yet."""
    size, tile = data.image_size, data.tile
    held = validation_of(data)
    if held in (None, "given") and not given.keys() <= {"train"}:
        split = "given by the source"
    else:
        fold = f"fold {held.index} of {held.of}, " if isinstance(held, Fold) else ""
        test = ", with the test set of the source" if "test" in given else ""
        split = f"{fold}random, by the seed{test}"
    return {
        "Type": _TYPES[kind],
        "Understood": "",
        "Files": formats or "",
        "Stored as": "",
        "Cut": f"into tiles of {tile[0]} x {tile[1]} pixels" if tile else "",
        "Fitted": f"into {size[0]} x {size[1]} pixels, {_FITTED[data.fit]}" if size and not tile else "",
        "Groups": f"{len(set(groups)):,}, none of which a split parts" if groups else "",
        "Split": split,
    }


def _sizes_to_fit(dataset: _Set, data: DataSettings) -> list[DataWarning]:
    if len(dataset.sizes) < 2 or data.image_size or data.tile:
        return []
    (height, width), _, _ = dataset.sizes[0]
    tiles = ", or `tile`, which cuts them" if dataset.kind == "masks" else ""
    return [
        DataWarning(
            "sizes-differ",
            f"{len(dataset.sizes)} sizes of images, while a model needs one",
            f"Write `image_size` under [data], such as [{height}, {width}], with `fit`{tiles}.",
        )
    ]


def _picture(name: str, image: Array, target: Array | int, classes: list[str]) -> SamplePicture:
    size = f"{image.shape[0]} x {image.shape[1]}"
    rgb = pictures.shown(image)
    small = pictures.within(rgb, SIDE)
    if not isinstance(target, np.ndarray) or target.ndim == 0:
        return SamplePicture(name, f"{size}, {classes[int(target)]}", small, None)
    counts = np.bincount(target.ravel(), minlength=256)
    present = np.flatnonzero(counts[:IGNORE])
    shares = [f"{classes[index]}: {counts[index] / target.size:.1%}" for index in present]
    if not present.any():
        shares = ["nothing labelled"]
    overlay = pictures.within(pictures.overlay(rgb, target), SIDE)
    return SamplePicture(name, f"{size}, {', '.join(shares)}", small, overlay)


MOST_SAMPLES = 10
"""Maximum number of samples listed in a warning; JSON output lists all."""
MOST_SIZES = 10


def inspection_document(inspections: Sequence[Inspection], *, pictured: bool = True) -> Document:
    """Return a document on one or several data sets; without pictures unless `pictured`."""
    if len(inspections) == 1:
        return Document(inspections[0].source, tuple(_blocks(inspections[0], pictured)), "Data set")
    sections = [
        Section(inspection.source, tuple(_blocks(inspection, pictured)), f"set-{number}")
        for number, inspection in enumerate(inspections, start=1)
    ]
    return Document("Data sets", tuple(sections))


def _blocks(inspection: Inspection, pictured: bool) -> Iterator[Block]:
    yield Paragraph(f"Inspected: {inspection.basis}.")
    by_split = ", ".join(f"{count:,} {split}" for split, count in inspection.splits.items())
    samples = f"Samples: {inspection.count:,}" + (f" ({by_split})" if by_split else "")
    yield Items((*(f"{name}: {text}" for name, text in inspection.facts.items()), samples))
    yield Section("Warnings", tuple(_warnings(inspection.warnings)))
    if pictured and inspection.pictures:
        yield Section("Samples", (Photos(tuple(map(_photo, inspection.pictures))),))
    yield Section("Classes", (_class_table(inspection),))
    sizes, more = inspection.sizes[:MOST_SIZES], len(inspection.sizes) - MOST_SIZES
    rows = tuple((f"{height} x {width}", f"{count:,}", first) for (height, width), count, first in sizes)
    table = Table(headings_of("Height x width", "Images", "First of them:"), rows)
    yield Section("Sizes", (table, *([Paragraph(f"And {more:,} more.")] if more > 0 else [])))


def _warnings(warnings: Sequence[DataWarning]) -> Iterator[Block]:
    if not warnings:
        yield Paragraph("None.")
    for warning in warnings:
        yield Paragraph(f"{'Serious: ' * warning.serious}{warning.title}. {warning.action}")
        more = len(warning.samples) - MOST_SAMPLES
        if warning.samples:
            yield Items((*warning.samples[:MOST_SAMPLES], *([f"and {more:,} more"] if more > 0 else [])))


def _class_table(inspection: Inspection) -> Table:
    masks = inspection.kind == "masks"
    splits = list(inspection.classes[0].splits) if inspection.classes else []
    words = ("In masks of", "Of pixels") if masks else ("Samples", "Share")
    headings = headings_of("Class:", *words, *splits)
    rows = tuple(
        (count.name, f"{count.samples:,}", _share(count), *(f"{count.splits[split]:,}" for split in splits))
        for count in inspection.classes
    )
    return Table(headings, rows)


def _photo(picture: SamplePicture) -> Photo:
    images = [(pictures.png(picture.image), f"Sample {picture.name}: {picture.about}")]
    if picture.overlay is not None:
        images.append((pictures.png(picture.overlay), "The same with its mask laid over it"))
    return Photo(f"{picture.name}: {picture.about}", tuple(images))


def _share(count: ClassCount) -> str:
    return f"{count.share:.1%}" if count.share >= 0.001 or not count.share else f"{count.share:.2g}"
