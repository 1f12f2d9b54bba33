"""A study of one point from the options of `scalestudy train`."""

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from scalestudy.data.sources.registry import named_source
from scalestudy.study import keys
from scalestudy.study.file import Study
from scalestudy.study.parse import study_of
from scalestudy.util.errors import UserError

HIDDEN = ("data.source", "data.seed", "launch.on", "launch.site")
"""Keys that have options of their own, or that one run here has no use for."""


def options() -> Iterable[str]:
    """One line for every key of a study file that is an option: name, what it takes, what it means."""
    for section, model in keys.SECTIONS.items():
        for key, field in model.model_fields.items():
            name = f"{section}.{key}"
            if name not in HIDDEN:
                meaning = " ".join((field.description or "").split())
                yield f"--{key.replace('_', '-')}: {keys.described(name)}. {meaning}"


def option_values(arguments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Settings by section from `["--batch-size", "8", "--xla", "--image-size", "256", "256"]`.

    Raises:
        UserError: For an option that is no key of a study file.
    """
    settings: dict[str, dict[str, Any]] = {}
    for option, words in _grouped(arguments):
        section, key, off = _key(option)
        _refuse_commas(option, f"{section}.{key}", words)
        text = "false" if off else " ".join(words) or "true"
        values = [_value(section, key, word) for word in words]
        settings.setdefault(section, {})[key] = values if len(words) > 1 else _value(section, key, text)
    return settings


def one_point_study(
    task: str, source: str | None, sweep: dict[str, Any], settings: dict[str, dict[str, Any]]
) -> Study:
    """A study whose sweep is one point; paths are seen from the working folder.

    `sweep` has one `strategy`, `workers` and `seed`, and an `engine` unless it is the strategy's; a `source`
    of None is the task's own.

    Raises:
        UserError: If a value is not what its key takes.
    """
    if source is not None:
        absolute = source if named_source(source) else os.path.abspath(os.path.expanduser(source))
        settings = settings | {"data": settings.get("data", {}) | {"source": absolute}}
    name = Path(task).stem.strip("._") or "task"
    table = {"task": task, "sweep": sweep, **settings}
    study = study_of(_literal(table), Path(f"{name}.toml"))
    return study.model_copy(update={"name": f"{name}-{study.sweep.strategy[0]}-w{sweep['workers']}"})


def _grouped(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    groups: list[tuple[str, list[str]]] = []
    for argument in arguments:
        if argument.startswith("--"):
            option, equals, word = argument.partition("=")
            groups.append((option, [word] if equals else []))
        elif groups:
            groups[-1][1].append(argument)
        else:
            raise UserError("options", f"the argument {argument}", "Write --name value.")
    return groups


def _refuse_commas(option: str, name: str, words: Sequence[str]) -> None:
    """Refuse `32,32` where a list of two numbers would do."""
    if len(words) != 1 or not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})+", words[0]):
        return
    numbers = words[0].split(",")
    with suppress(keys.WrongValue):
        keys.checked(name, [int(number) for number in numbers])
        right = f"{option} {' '.join(numbers)}"
        raise UserError("numbers separated by spaces", f"{option} {words[0]}", f"Write {right}.")


def _key(option: str) -> tuple[str, str, bool]:
    """Section and key of an option, and whether it switches the key off (`--no-xla`)."""
    word = option.removeprefix("--").replace("-", "_")
    for spelled in dict.fromkeys((word, word.removeprefix("no_"))):
        name = keys.full_name(spelled)
        if name is not None and name not in HIDDEN:
            section, key = name.split(".")
            return section, key, spelled != word
    options = ("task", "data", "engine", "strategy", "workers", "seed", "out", "report", "keys")
    known = [key for model in keys.SECTIONS.values() for key in model.model_fields]
    close = keys.suggestion(word, [*options, *known])
    action = (
        f"Did you mean --{close.replace('_', '-')}?" if close else "`scalestudy train --keys` lists them."
    )
    raise UserError("a known option", option, action)


def _value(section: str, key: str, word: str) -> Any:
    """The word as TOML reads it where the key takes that, or where it is a number; else the word itself."""
    try:
        value = tomllib.loads(f"value = {word}")["value"]
        keys.checked(f"{section}.{key}", value)
    except keys.WrongValue:
        return value if word[:1] in "-+.0123456789" else word
    except (ValueError, RecursionError):  # no TOML, or a number of thousands of digits
        return word
    return value


def _literal(value: Any) -> Any:
    """Strings shielded from the expansion of variables, which the shell has done."""
    if isinstance(value, dict):
        return {key: _literal(inner) for key, inner in value.items()}
    return value.replace("$", "$$") if isinstance(value, str) else value
