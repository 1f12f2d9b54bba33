"""A set as it is before it is trained on: from the prepared set, or from its source."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scalestudy.conduct.listener import Listener
from scalestudy.data.images import pictures
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.prepare import find_prepared
from scalestudy.data.types import IGNORE
from scalestudy.errors import UserError
from scalestudy.features.inspect.data_warnings import MOST_COMPARED, findings
from scalestudy.features.inspect.dataset import Looked, of_prepared, of_source
from scalestudy.features.inspect.fingerprints import SMALLEST
from scalestudy.features.inspect.seen import Seen, labelled, look_through
from scalestudy.features.inspect.shown import ClassCount, Finding, Picture, Shown

if TYPE_CHECKING:
    from scalestudy.study.settings import DataSettings

SIDE = 320
"""Pixels of the longer side of a picture."""


def show_data(
    data: "DataSettings",
    kind: "Kind | None" = None,
    base: Path = Path(),
    *,
    samples: int = 8,
    everything: bool = False,
    listener: Listener | None = None,
) -> Shown:
    """Look through a set: all of it where it is prepared, else some of its images.

    Args:
        data: What is read and how, with a source.
        kind: What a task needs; another kind is refused.
        base: Folder that relative paths are seen from.
        samples: Pictures to bring.
        everything: Whether to decode all images of a source that is not prepared.
        listener: Is told how far it is.

    Raises:
        UserError: The source is missing, of another kind or damaged.
    """
    ready = find_prepared(data, task_kind=kind, base=base)
    looked = of_prepared(ready, data) if ready else of_source(data, base, everything)
    seen = Seen(looked.names, looked.groups, looked.splits)
    keep = np.linspace(0, len(looked.names) - 1, min(samples, len(looked.names))).round().astype(int)
    listener = listener or Listener()
    with listener.looking(str(data.source)) as on_progress:
        kept = look_through(seen, looked.rows, set(keep.tolist()), on_progress)
    with listener.looking(f"{data.source}, each image beside each") as on_progress:
        classes = _classes(looked, seen)
        found = findings(seen, looked.kind, classes, looked.size_counts, on_progress)
    looked.facts["Understood"] = looked.understood()
    found += _sizes_to_fit(looked, data)
    if told := looked.told():
        looked.facts["Told"] = "; ".join(told)
    if max(seen.sides) < SMALLEST:
        looked.facts["Compared"] = f"for copies; images below {SMALLEST} pixels are too small for near ones"
    elif seen.count > MOST_COMPARED:
        looked.facts["Compared"] = f"for copies; the first {MOST_COMPARED:,} samples for near ones"
    names = [each.name for each in classes]
    return Shown(
        source=str(data.source),
        kind=looked.kind,
        basis=looked.basis,
        facts={name: text for name, text in looked.facts.items() if text},
        count=looked.count,
        seen=seen.count,
        splits=looked.split_counts,
        sizes=looked.size_counts,
        classes=classes,
        findings=found,
        pictures=[_picture(looked.names[row], *kept[row], names) for row in sorted(kept)],
    )


def _classes(looked: Looked, seen: Seen) -> list[ClassCount]:
    counts = seen.of_classes
    if looked.kind == "masks":
        counts = counts[:, :IGNORE]
    try:
        names = looked.class_names()
    except UserError:
        if seen.count == looked.count:
            raise
        names = [str(number) for number in range(int(np.flatnonzero(counts.any(axis=0)).max()) + 1)]
    splits = np.array(seen.splits)
    known = [split for split in ("train", "validation", "test") if (splits == split).any()]
    total = max(int(counts.sum()), 1)
    found = []
    for index, name in enumerate(names):
        column = counts[:, index] if index < counts.shape[1] else np.zeros(len(counts), int)
        holds = column > 0
        by_split = {split: int((holds & (splits == split)).sum()) for split in known}
        found.append(ClassCount(name, int(holds.sum()), float(column.sum() / total), by_split))
    return found


def _sizes_to_fit(looked: Looked, data: "DataSettings") -> list[Finding]:
    if len(looked.size_counts) < 2 or data.image_size or data.tile:
        return []
    (height, width), _, _ = looked.size_counts[0]
    tiles = ", or `tile`, which cuts them" if looked.kind == "masks" else ""
    return [
        Finding(
            f"{len(looked.size_counts)} sizes of images, while a model needs one",
            f"Write `image_size` under [data], such as [{height}, {width}], with `fit`{tiles}.",
        )
    ]


def _picture(name: str, image: Any, target: Any, classes: list[str]) -> Picture:
    height, width = image.shape[:2]
    size = f"{height} x {width}"
    seen = pictures.within(pictures.shown(image), SIDE)
    if not isinstance(target, np.ndarray):
        return Picture(name, f"{size}, {classes[int(target)]}", seen, None)
    laid = pictures.within(pictures.overlay(pictures.shown(image), target), SIDE)
    counts = np.bincount(target.ravel(), minlength=256)
    inside = [
        f"{classes[each]}: {counts[each] / target.size:.1%}" for each in np.flatnonzero(counts[:IGNORE])
    ]
    if not labelled(counts[None])[0]:
        inside = ["nothing labelled"]
    return Picture(name, f"{size}, {', '.join(inside)}", seen, laid)
