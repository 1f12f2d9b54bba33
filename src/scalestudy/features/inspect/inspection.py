"""A data set before it is trained on: what was understood, its counts and sizes, and what may be wrong."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scalestudy.app.listener import Listener
from scalestudy.data.images import pictures
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.prepare import find_prepared
from scalestudy.data.types import IGNORE, Array, Sample, Size
from scalestudy.features.inspect.data_warnings import ClassCount, DataWarning, Statistics, data_warnings
from scalestudy.features.inspect.dataset import DataSet, of_prepared, of_source
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.study.settings import DataSettings

SIDE = 320
"""Pixels of the longer side of a picture."""


@dataclass(frozen=True)
class SamplePicture:
    """A sample to look at.

    Attributes:
        name: Its name.
        about: Its size, and its class or the classes in its mask, in words.
        image: RGB, uint8 [h, w, 3].
        overlay: The same with the mask laid over it; None without a mask.
    """

    name: str
    about: str
    image: npt.NDArray[np.uint8]
    overlay: npt.NDArray[np.uint8] | None


@dataclass(frozen=True)
class Inspection:
    """A data set as it was inspected.

    Attributes:
        source: As it was named.
        kind: "masks" or "classes".
        basis: What was inspected, in a sentence.
        facts: What was understood and how, by heading.
        count: Samples in all.
        inspected: Samples that were read.
        splits: Samples by split; empty where they are not split yet.
        sizes: Height and width of the images, how many, and the first of them; the most frequent first.
        classes: In their order.
        warnings: The serious ones first.
        pictures: Some samples.
    """

    source: str
    kind: Kind
    basis: str
    facts: dict[str, str]
    count: int
    inspected: int
    splits: dict[str, int]
    sizes: list[tuple[Size, int, str]]
    classes: list[ClassCount]
    warnings: list[DataWarning]
    pictures: list[SamplePicture]

    def as_json(self) -> dict[str, Any]:
        """Everything but the pictures, in JSON's types."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "pictures"}
        return fields | {
            "sizes": [
                {"height": size[0], "width": size[1], "images": images, "first": first}
                for size, images, first in self.sizes
            ],
            "classes": [asdict(count) for count in self.classes],
            "warnings": [asdict(warning) for warning in self.warnings],
        }


def inspect_data(
    data: "DataSettings",
    kind: "Kind | None" = None,
    base: Path = Path(),
    *,
    samples: int = 8,
    everything: bool = False,
    listener: Listener | None = None,
) -> Inspection:
    """Inspect a data set: all of it where it is prepared, else some of its images.

    Args:
        data: What is read and how, with a source.
        kind: What a task needs; another kind is refused.
        base: Folder that relative paths are seen from.
        samples: Pictures to bring.
        everything: Whether to decode all images of a source that is not prepared.
        listener: Is told of progress.

    Raises:
        UserError: The source is missing, of another kind or damaged.
    """
    ready = find_prepared(data, task_kind=kind, base=base)
    dataset = of_prepared(ready, data) if ready else of_source(data, base, everything)
    statistics = Statistics(dataset.names, dataset.groups, dataset.splits)
    rows = np.linspace(0, len(dataset.names) - 1, min(samples, len(dataset.names))).round().astype(int)
    with (listener or Listener()).looking(str(data.source)) as on_progress:
        chosen = _read(dataset, statistics, set(rows.tolist()), on_progress)
    classes = _classes(dataset, statistics)
    warnings = data_warnings(statistics, dataset.kind, classes, dataset.size_counts)
    dataset.facts["Understood"] = dataset.understood()
    dataset.facts["Remarks"] = "; ".join(dataset.remarks())
    names = [count.name for count in classes]
    return Inspection(
        source=str(data.source),
        kind=dataset.kind,
        basis=dataset.basis,
        facts={name: text for name, text in dataset.facts.items() if text},
        count=dataset.count,
        inspected=len(statistics.digests),
        splits=dataset.split_counts,
        sizes=dataset.size_counts,
        classes=classes,
        warnings=[*warnings, *_sizes_to_fit(dataset, data)],
        pictures=[_picture(dataset.names[row], *chosen[row], names) for row in sorted(chosen)],
    )


def _read(
    dataset: DataSet, statistics: Statistics, keep: set[int], on_progress: Callable[[int, int | None], None]
) -> dict[int, Sample]:
    """Take statistics of all samples; the ones at the rows `keep` are returned."""
    samples: dict[int, Sample] = {}
    for row, (image, target) in enumerate(dataset.rows):
        statistics.add(image, target)
        if row in keep:
            samples[row] = (np.array(image), np.array(target) if isinstance(target, np.ndarray) else target)
        on_progress(row + 1, len(dataset.names))
    return samples


def _classes(dataset: DataSet, statistics: Statistics) -> list[ClassCount]:
    counts = statistics.of_classes
    if dataset.kind == "masks":
        counts = counts[:, :IGNORE]
    try:
        names = dataset.class_names()
    except UserError:
        if len(counts) == dataset.count:
            raise
        names = [str(number) for number in range(int(np.flatnonzero(counts.any(axis=0)).max()) + 1)]
    splits = np.array(statistics.splits)
    known = [split for split in ("train", "validation", "test") if (splits == split).any()]
    total = max(int(counts.sum()), 1)
    classes = []
    for index, name in enumerate(names):
        column = counts[:, index] if index < counts.shape[1] else np.zeros(len(counts), int)
        holds = column > 0
        by_split = {split: int((holds & (splits == split)).sum()) for split in known}
        classes.append(ClassCount(name, int(holds.sum()), float(column.sum() / total), by_split))
    return classes


def _sizes_to_fit(dataset: DataSet, data: "DataSettings") -> list[DataWarning]:
    if len(dataset.size_counts) < 2 or data.image_size or data.tile:
        return []
    (height, width), _, _ = dataset.size_counts[0]
    tiles = ", or `tile`, which cuts them" if dataset.kind == "masks" else ""
    return [
        DataWarning(
            "sizes-differ",
            f"{len(dataset.size_counts)} sizes of images, while a model needs one",
            f"Write `image_size` under [data], such as [{height}, {width}], with `fit`{tiles}.",
        )
    ]


def _picture(name: str, image: Array, target: Array | int, classes: list[str]) -> SamplePicture:
    height, width = image.shape[:2]
    size = f"{height} x {width}"
    rgb = pictures.shown(image)
    small = pictures.within(rgb, SIDE)
    if not isinstance(target, np.ndarray):
        return SamplePicture(name, f"{size}, {classes[int(target)]}", small, None)
    counts = np.bincount(target.ravel(), minlength=256)
    present = np.flatnonzero(counts[:IGNORE])
    shares = [f"{classes[index]}: {counts[index] / target.size:.1%}" for index in present]
    if not present.any():
        shares = ["nothing labelled"]
    overlay = pictures.within(pictures.overlay(rgb, target), SIDE)
    return SamplePicture(name, f"{size}, {', '.join(shares)}", small, overlay)
