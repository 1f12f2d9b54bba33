"""What is inspected of a set: all of it as it was prepared, or images of its source."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scalestudy.data.sources import left_out
from scalestudy.data.sources.locate import find_whole
from scalestudy.data.sources.registry import Kind
from scalestudy.data.splits.held_out import Fold
from scalestudy.data.splits.split import Split, find_split, make_split, validation_of
from scalestudy.data.types import Ranges, Sample, Size
from scalestudy.util import units
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.data.store.prepared import Prepared
    from scalestudy.study.settings import DataSettings

SAMPLE = 500
"""Images that are read of a source that is not prepared."""
_HOLDS = {"masks": "images with masks", "classes": "images with one class each"}


@dataclass
class DataSet:
    """A set while it is inspected; `names`, `groups` and `splits` are those of the rows that are given."""

    kind: Kind
    basis: str
    facts: dict[str, str]
    count: int
    names: list[str]
    groups: list[str] | None
    splits: list[str]
    split_counts: dict[str, int]
    size_counts: list[tuple[Size, int, str]]
    rows: Iterable[Sample]
    class_names: Callable[[], list[str]]
    remarks: Callable[[], list[str]]
    understood: Callable[[], str]


def of_prepared(ready: "Prepared", data: "DataSettings") -> DataSet:
    """All samples of a prepared set.

    Raises:
        UserError: It is of a task's own reading, and holds no images that anybody knows how to draw.
    """
    if ready.kind == "custom" or ready.scale is None:
        raise UserError(
            "a set of images to show",
            f"{ready.path}, of a task's own reading: {', '.join(ready.arrays)}",
            "Look at its arrays with numpy.load; `scalestudy data prepare` prints how many there are.",
        )
    split = find_split(ready, validation_of(data), data.seed)
    stored = split is not None
    if split is None:
        split = make_split(ready, validation_of(data), data.seed)
    height, width, channels = ready.input_shape
    inputs, targets = ready.inputs, ready.targets
    facts = {"Holds": _HOLDS[ready.kind], "Understood": ""}
    if ready.formats:
        facts["Files"] = ready.formats
    seen = "them as they are" if ready.scale == 1 else f"values divided by {1 / ready.scale:g}"
    facts["Stored as"] = (
        f"{ready.count:,} x {height} x {width} x {channels} {inputs.dtype}, {units.size(ready.bytes)} with "
        f"targets; models see {seen}"
    )
    facts |= _how_fitted(data) | _grouped(ready.groups)
    facts["Split"] = _split_in_words(data, ready.given)
    if ready.given and split.quality_split == "test":
        facts["Split"] += ", quality being measured on its test set"
    if not stored:
        facts["Split"] += "; stored by `scalestudy data prepare`"
    notes = [*ready.remarks, *map(str, ready.left_out)]
    return DataSet(
        kind=ready.kind,
        basis=f"all {ready.count:,} samples, as prepared in {ready.path}",
        facts=facts,
        count=ready.count,
        names=list(ready.names),
        groups=list(ready.groups) if ready.groups else None,
        splits=_by_row(split, ready.count),
        split_counts={
            name: len(rows)
            for name, rows in (("train", split.train), ("validation", split.validation), ("test", split.test))
            if len(rows)
        },
        size_counts=list(ready.size_counts) or [((height, width), ready.count, ready.names[0])],
        rows=((np.asarray(inputs[row]), _target(targets[row])) for row in range(ready.count)),
        class_names=lambda: list(ready.class_names),
        remarks=lambda: notes,
        understood=lambda: ready.understood,
    )


def of_source(data: "DataSettings", base: Path, everything: bool) -> DataSet:
    """Images of a source that is not prepared, drawn at random where there are many.

    Raises:
        UserError: It is missing, an image is damaged, or nobody knows what it holds before a task reads it.
    """
    source: Any = find_whole(data, base=base)
    if source.kind == "custom":
        raise UserError(
            "a set of images to show",
            f"{source.identity}, not prepared yet",
            "Prepare it with `scalestudy data prepare`, which says what it holds.",
        )
    contents = source.contents()
    count = contents.count
    rows = np.arange(count)
    if not everything and count > SAMPLE and hasattr(source, "pick"):
        rows = np.sort(np.random.default_rng(data.seed).choice(count, SAMPLE, replace=False))
        source.pick(rows.tolist())
    names = contents.names or [str(row) for row in range(count)]
    given = _given(contents.given, count)
    facts = {"Holds": _HOLDS[source.kind], "Understood": ""}
    if contents.formats:
        facts["Files"] = contents.formats
    facts |= _how_fitted(data) | _grouped(contents.groups)
    facts["Split"] = _split_in_words(data, contents.given)
    if contents.given and validation_of(data) not in (None, "given"):
        facts["Split"] += " when it is prepared; shown here as the source brings it"
    part = f"{len(rows):,} of {count:,} images, drawn at random; --all reads each of them"
    return DataSet(
        kind=source.kind,
        basis=f"the source, not prepared yet: {part if len(rows) < count else f'all {count:,} images'}",
        facts=facts,
        count=count,
        names=[names[row] for row in rows],
        groups=[contents.groups[row] for row in rows] if contents.groups else None,
        splits=[given[row] for row in rows],
        split_counts={split: stop - start for split, (start, stop) in contents.given.items()},
        size_counts=contents.size_counts or [(contents.input_shape[:2], count, names[0])],
        rows=_single(source.rows()),
        class_names=source.class_names,
        remarks=lambda: [*left_out.remarks_of(source), *map(str, left_out.of_source(source))],
        understood=lambda: str(getattr(source, "understood", "")),
    )


def _single(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Of a stack, whose pages are to become samples, the first page."""
    for image, target in samples:
        if image.ndim == 4:
            stacked = isinstance(target, np.ndarray) and target.ndim == 3
            yield image[0], target[0] if stacked else target  # type: ignore[index]
        else:
            yield image, target


def _target(target: Any) -> Any:
    return np.asarray(target) if np.ndim(target) else int(target)


def _how_fitted(data: "DataSettings") -> dict[str, str]:
    ways = {
        "pad": "aspect kept, padded",
        "crop": "aspect kept, cropped",
        "stretch": "stretched",
    }
    if data.tile:
        return {"Cut": f"into tiles of {data.tile[0]} x {data.tile[1]} pixels"}
    if data.image_size:
        return {"Fitted": f"into {data.image_size[0]} x {data.image_size[1]} pixels, {ways[data.fit]}"}
    return {}


def _grouped(groups: Any) -> dict[str, str]:
    return {"Groups": f"{len(set(groups)):,}, none of which a split parts"} if groups else {}


def _split_in_words(data: "DataSettings", given: Ranges) -> str:
    held = validation_of(data)
    if held in (None, "given") and not given.keys() <= {"train"}:
        return "as the source brings it"
    how = f"fold {held.index} of {held.of}, " if isinstance(held, Fold) else ""
    return f"{how}made from the seed" + (
        ", with the test set that the source brings" if "test" in given else ""
    )


def _by_row(split: Split, count: int) -> list[str]:
    names = [""] * count
    for name, rows in (("train", split.train), ("validation", split.validation), ("test", split.test)):
        for row in rows:
            names[row] = name
    return names


def _given(given: Ranges, count: int) -> list[str]:
    splits = [""] * count
    for split, (start, stop) in given.items():
        splits[start:stop] = [split] * (stop - start)
    return splits
