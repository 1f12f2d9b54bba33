"""Make a study of one point from the options of `scalestudy train`."""

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from scalestudy.config import keys
from scalestudy.config.file import Study
from scalestudy.config.parse import study_of
from scalestudy.data.sources import named_source
from scalestudy.util.errors import UserError

HIDDEN = ("data.source", "data.seed", "launch.on", "launch.site")
"""Keys that have their own options, or that do not apply to a single run on this machine."""


def options() -> Iterable[str]:
    """One line for every key of a study file that is an option: its name, values and meaning."""
    for section, model in keys.SECTIONS.items():
        for key, field in model.model_fields.items():
            name = f"{section}.{key}"
            if name not in HIDDEN:
                meaning = " ".join((field.description or "").split())
                yield f"--{key.replace('_', '-')}: {keys.described(name)}. {meaning}"


def option_values(arguments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse settings by section from `["--batch-size", "8", "--xla", "--image-size", "256", "256"]`.

    Raises:
        UserError: An option is not a key of a study file.
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
    """Make a study with a single point; paths are relative to the working folder.

    `sweep` has one `strategy`, `workers` and `seed`, and an `engine` unless the strategy's is meant. If
    `source` is None, the task's own is used.

    Raises:
        UserError: A key does not accept its value.
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
    """Refuse `32,32` if the key accepts a list of two numbers."""
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
    """Read the word as TOML if the key accepts that or if it is a number; otherwise return it as a string."""
    try:
        value = tomllib.loads(f"value = {word}")["value"]
        keys.checked(f"{section}.{key}", value)
    except keys.WrongValue:
        return value if word[:1] in "-+.0123456789" else word
    except (ValueError, RecursionError):  # not TOML, or an integer with thousands of digits
        return word
    return value


def _literal(value: Any) -> Any:
    """Protect strings from the expansion of variables, since the shell has already expanded them."""
    if isinstance(value, dict):
        return {key: _literal(inner) for key, inner in value.items()}
    return value.replace("$", "$$") if isinstance(value, str) else value
