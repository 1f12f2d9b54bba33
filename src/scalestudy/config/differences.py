"""Compare two versions of a study, to decide whether they may share a results folder."""

import filecmp
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scalestudy.config.file import Study
from scalestudy.config.keys import shown
from scalestudy.config.point import NOT_TIMED, Point
from scalestudy.util.errors import UserError

Reading = tuple[Study, list[Point]]
PATHS = ("task", "data.source", "data.read", "train.weights")
"""Keys whose values may be absolute paths."""


def refuse_other_study(path: Path, stored: Reading, new: Reading) -> None:
    """Refuse to mix the results of two studies.

    Changed lists of values under [sweep] are allowed, and files that were moved together with `path`.

    Raises:
        UserError: The settings differ; the error lists every key.
    """
    study, points = stored
    task_now = new[0].task
    if _moved(study.task, task_now, path):
        # Its defaults are read where it is now.
        study = Study.model_validate(study.model_dump() | {"task": task_now})
        stored = study, points
    sentences = list(dict.fromkeys(differences(stored, new, path)))
    if sentences:
        raise UserError(
            f"the study that made {path}",
            "a different one: " + "; ".join(sentences),
            "Name another folder with --out, or undo these changes. Values may be added under [sweep].",
        )


def differences(
    before: Reading, after: Reading, folder: Path | None = None
) -> Iterator[str]:
    """Sentences on differences: "train.epochs is 8 in the folder and 10 in the study file".

    Files that were moved together with the results folder `folder` do not differ.
    """
    swept = before[0].sweep.other.keys()
    asked_for = after[0].sweep.other.keys()
    for name in sorted(swept ^ asked_for):
        where = "the folder" if name in swept else "the study file"
        yield f"{name} is swept in {where} only"
    # Folders of software and data, and the progress timeout, cannot change a result.
    ignored = {"data.cache", *swept, *asked_for}
    ignored |= {f"launch.{key}" for key in NOT_TIMED}
    pairs = [(settings_of(before[0]), settings_of(after[0]))]
    points = {point.name: point for point in before[1]}
    for point in after[1]:
        if point.name in points:
            pairs.append((_settings(points[point.name]), _settings(point)))
    for old, now in pairs:
        for key in sorted((old.keys() | now.keys()) - ignored):
            stored, asked = old.get(key), now.get(key)
            if stored == asked:
                continue
            if folder and key in PATHS and _moved(stored, asked, folder):
                continue
            yield f"{key} is {_word(stored)} in the folder and {_word(asked)} in the study file"


def _moved(before: Any, after: Any, folder: Path) -> bool:
    """Whether a file or folder was moved, or a file copied, together with a results folder.

    Its path from their common parent folder is the same. At its old place nothing is left, or an equal file.
    """
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    old, new = Path(before), Path(after)
    if old == new or not old.is_absolute() or not new.is_absolute():
        return False
    inside = new.relative_to(os.path.commonpath([new, folder.absolute()])).parts
    if not inside or old.parts[-len(inside) :] != inside:
        return False
    if not old.exists():
        return True
    # By content: a copy may have another time.
    return old.is_file() and new.is_file() and filecmp.cmp(old, new, shallow=False)


def _word(value: Any) -> str:
    return "not set" if value is None else shown(value)


def settings_of(study: Study) -> dict[str, Any]:
    """Settings of a study by dotted key, with defaults filled in; JSON values."""
    source = study.data.source or study.defaults.source
    data = study.data.model_copy(update={"source": source})
    sections = {
        "data": data,
        "train": study.defaults.complete_train(study.train),
        "launch": study.launch,
    }
    values = {name: model.model_dump(mode="json") for name, model in sections.items()}
    return _flatten({"task": study.task} | values)


def _settings(point: Point) -> dict[str, Any]:
    values = point.identity()
    values |= point.terms.model_dump(mode="json", exclude={"oversubscribed"})
    del values["sources"]  # compared by `task_sources.changes`
    return _flatten(values)


def _flatten(table: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if not isinstance(value, dict) or not value:
            flat[key] = value
            continue
        for name, setting in value.items():
            flat[f"{key}.{name}"] = setting
    return flat
