"""Whether two readings of a study belong in one folder of results."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scalestudy.study.catalog import resolved_train, task_defaults
from scalestudy.study.file import Study
from scalestudy.study.keys import shown
from scalestudy.study.point import Point
from scalestudy.util.errors import UserError

Reading = tuple[Study, list[Point]]

_OF_THE_PLACE = {"data.cache", "launch.silent_after"}
"""Settings that cannot change a result."""


def refuse_other_study(path: Path, stored: Reading, new: Reading) -> None:
    """Refuse to mix the results of two studies; longer or shorter lists under [sweep] are no other study.

    Raises:
        UserError: Naming every key that differs.
    """
    sentences = list(dict.fromkeys(differences(stored, new)))
    if sentences:
        raise UserError(
            f"the study that made {path}",
            "another one: " + "; ".join(sentences),
            "Name another folder with --out, or change these back; values under [sweep] may be added.",
        )


def differences(stored: Reading, new: Reading) -> Iterator[str]:
    """Sentences on what differs: "train.epochs is 8 in the folder and 10 in the study file"."""
    before, after = stored[0].sweep.other, new[0].sweep.other
    for name in sorted(set(before) ^ set(after)):
        where = "the folder" if name in before else "the study file"
        yield f"{name} is swept in {where} only"
    swept = set(before) | set(after)
    yield from _unequal(settings_of(stored[0]), settings_of(new[0]), ignored=swept)
    named = {point.name: point for point in stored[1]}
    for point in new[1]:
        if point.name in named:
            yield from _unequal(_point(named[point.name]), _point(point))


def settings_of(study: Study) -> dict[str, Any]:
    """What a study asks for, by dotted key, defaults filled in: JSON values."""
    source = study.data.source or task_defaults(study.task).source
    data = study.data.model_copy(update={"source": source})
    sections = {"data": data, "train": resolved_train(study.task, study.train), "launch": study.launch}
    return {"task": study.task} | _dotted(
        {name: model.model_dump(mode="json") for name, model in sections.items()}
    )


def _point(point: Point) -> dict[str, Any]:
    terms = point.terms.model_dump(mode="json", exclude={"oversubscribed"})
    return _dotted(point.identity() | terms)


def _dotted(table: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": each for inner, each in value.items()}
        else:
            flat[key] = value
    return flat


def _unequal(
    stored: dict[str, Any], new: dict[str, Any], ignored: set[str] | frozenset[str] = frozenset()
) -> Iterator[str]:
    for key in sorted(set(stored) | set(new)):
        if key not in ignored | _OF_THE_PLACE and stored.get(key) != new.get(key):
            before, after = _word(stored.get(key)), _word(new.get(key))
            yield f"{key} is {before} in the folder and {after} in the study file"


def _word(value: Any) -> str:
    return "not set" if value is None else shown(value)
