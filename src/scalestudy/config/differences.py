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
    study_now, _ = new
    if _moved(study.task, study_now.task, path):
        # Its defaults are read where it is now.
        values = study.model_dump()
        values["task"] = study_now.task
        stored = Study.model_validate(values), points
    # A dictionary, since the same key may differ in several points.
    sentences = dict.fromkeys(differences(stored, new, path))
    if sentences:
        raise UserError(
            f"the study that made {path}",
            "a different one: " + "; ".join(sentences),
            "Name another folder with --out, or undo these changes. Values may be added under [sweep].",
        )


def differences(
    before: Reading,
    after: Reading,
    folder: Path | None = None,
) -> Iterator[str]:
    """Sentences on differences: "train.epochs is 8 in the folder and 10 in the study file".

    Files that were moved together with the results folder `folder` do not differ.
    """
    study_before, points_before = before
    study_after, points_after = after
    swept = study_before.sweep.other.keys()
    asked_for = study_after.sweep.other.keys()
    for name in sorted(swept ^ asked_for):
        where = "the folder" if name in swept else "the study file"
        yield f"{name} is swept in {where} only"
    # Folders of software and data, and the progress timeout, cannot change a result.
    ignored = {"data.cache", *swept, *asked_for}
    for key in NOT_TIMED:
        ignored.add(f"launch.{key}")
    pairs = [(settings_of(study_before), settings_of(study_after))]
    before_by_name = {point.name: point for point in points_before}
    for point in points_after:
        # A point of one study alone is a value that was added under [sweep], or taken out.
        if point.name in before_by_name:
            same_before = before_by_name[point.name]
            pairs.append((_settings(same_before), _settings(point)))
    for old, now in pairs:
        keys = old.keys() | now.keys()
        for key in sorted(keys - ignored):
            stored = old.get(key)
            asked = now.get(key)
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
    old = Path(before)
    new = Path(after)
    # Names, such as "cnn", are no places.
    if old == new or not old.is_absolute() or not new.is_absolute():
        return False
    common = os.path.commonpath([new, folder.absolute()])
    inside = new.relative_to(common).parts
    if not inside or old.parts[-len(inside) :] != inside:
        return False
    if not old.exists():
        return True
    # By content: a copy may have another time.
    return old.is_file() and new.is_file() and filecmp.cmp(old, new, shallow=False)


def _word(value: Any) -> str:
    if value is None:
        return "not set"
    return shown(value)


def settings_of(study: Study) -> dict[str, Any]:
    """Settings of a study by dotted key, with defaults filled in; JSON values."""
    source = study.data.source or study.defaults.source
    data = study.data.model_copy(update={"source": source})
    train = study.defaults.complete_train(study.train)
    return _flatten(
        {
            "task": study.task,
            "data": data.model_dump(mode="json"),
            "train": train.model_dump(mode="json"),
            "launch": study.launch.model_dump(mode="json"),
        }
    )


def _settings(point: Point) -> dict[str, Any]:
    values = point.identity()
    values |= point.terms.model_dump(mode="json", exclude={"oversubscribed"})
    # Compared by `task_sources.changes`.
    del values["sources"]
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
