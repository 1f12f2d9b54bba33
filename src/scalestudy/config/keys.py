"""The keys of a study file: their names, the values they accept, and messages about wrong values."""

import json
import os
import re
from datetime import date, time
from functools import cache
from typing import Any

from pydantic import ValidationError

from scalestudy.config.formula import WrongFormula, WrongValue, suggestion
from scalestudy.config.settings import (
    DataSettings,
    LaunchSettings,
    PlanSettings,
    StrictModel,
    SweptValue,
    TrainSettings,
)

__all__ = ["WrongValue", "suggestion"]

SECTIONS: dict[str, type[StrictModel]] = {
    "data": DataSettings,
    "train": TrainSettings,
    "launch": LaunchSettings,
}
"""Sections whose keys can be swept: they decide the result of a point."""
UNSWEPT: dict[str, type[StrictModel]] = {"plan": PlanSettings}
"""Sections that change no run, only what is concluded from the runs."""
ALL_SECTIONS = SECTIONS | UNSWEPT
_MODELS = ALL_SECTIONS | {"sweep": SweptValue}
SWEEP_KEYS = tuple(SweptValue.model_fields)
TOP_KEYS = (
    "task",
    "name",
    "title",
    "description",
    "quality_margin",
    *ALL_SECTIONS,
    "sweep",
)
_SITE_KEYS = """
    partition account bill qos constraint gpus_per_node cpus_per_node exclusive memory_per_node
    tasks_per_node gpu_request time_limit requeues signal_lead modules module_purge scratch launcher
    wrapper environment container directives env
"""
SITE_KEYS = tuple(_SITE_KEYS.split())
"""Keys of site profiles (`scalestudy.launch.queue.site_profile.Site`), which people write into [launch]."""
LONGEST = 200
"""Largest number of characters of a value in a message."""
_VARIABLE = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})")
_BOUNDS = {
    "exclusiveMinimum": "above",
    "minimum": "of at least",
    "exclusiveMaximum": "below",
    "maximum": "at most",
}


def full_name(key: str) -> str | None:
    """Dotted name of a section's key: "epochs" -> "train.epochs"; None for others, as "seed" of [sweep]."""
    section, _, rest = key.rpartition(".")
    if section:
        known = section in SECTIONS and rest in SECTIONS[section].model_fields
        return key if known else None
    if key in SWEEP_KEYS:
        return None
    for name, model in SECTIONS.items():
        if key in model.model_fields:
            return f"{name}.{key}"
    return None


def check_value(name: str, value: Any) -> Any:
    """Validate a TOML value and return it in JSON types; "sweep.workers" accepts one item of that list.

    Raises:
        WrongValue: The key does not accept it.
    """
    section, key = name.split(".")
    try:
        # Strict as in JSON: "8" is not 8 and true is not 1, but a list is allowed for a pair.
        text = json.dumps({key: value})
        model = _MODELS[section].model_validate_json(text, strict=True)
    except ValidationError as error:
        raise _wrong_value(name, error) from None
    except (TypeError, ValueError, RecursionError):
        # Not representable in JSON: a date, a huge number.
        raise WrongValue(describe_key(name)) from None
    return model.model_dump(mode="json")[key]


def _wrong_value(name: str, error: ValidationError) -> WrongValue:
    """Return the error of our own validators, if one of them refused the value, else what its type is."""
    causes = []
    for part in error.errors():
        if part["type"] == "value_error":
            causes.append(part["ctx"]["error"])
    # It has a remedy of its own.
    for cause in causes:
        if isinstance(cause, WrongFormula):
            return cause
    if causes:
        return WrongValue(str(causes[0]))
    return WrongValue(describe_key(name))


def describe_key(name: str) -> str:
    """Values that the key with this dotted name accepts, in words."""
    return wanted(_properties(name))


def choices(name: str) -> list[str]:
    """Words that the key accepts, if any."""
    schema = _properties(name)
    words: list[str] = []
    for part in schema.get("anyOf", [schema]):
        if "enum" in part:
            words += part["enum"]
        elif "const" in part:
            words.append(part["const"])
    return words


def wanted(schema: dict[str, Any]) -> str:
    """Values that a JSON schema accepts, in words: "a whole number above 0"."""
    if "wanted" in schema:
        return str(schema["wanted"])
    if "anyOf" in schema:
        # TOML has no null: a key without a value is left out.
        parts = [part for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(map(wanted, parts))
    if "enum" in schema:
        choices = [f'"{choice}"' for choice in schema["enum"]]
        return f"one of {', '.join(choices)}"
    if "const" in schema:
        return f'"{schema["const"]}"'
    if schema.get("type") == "array":
        items = schema["prefixItems"]
        return f"a list of {len(items)} ({wanted(items[0])} each)"
    words = {
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
    }
    text = "a string"
    if schema.get("minLength"):
        text = "a string that is not empty"
    described = words.get(schema.get("type", ""), text)
    bounds = []
    for key, word in _BOUNDS.items():
        if key in schema:
            bounds.append(f"{word} {_figure(schema[key])}")
    if bounds:
        described += f" {' and '.join(bounds)}"
    return described


def shown(value: Any) -> str:
    """Write a value as in a study file, shortened if it is long."""
    try:
        if isinstance(value, date | time):
            text = str(value)
        else:
            text = json.dumps(value, default=str, ensure_ascii=False)
    except ValueError:
        # Python does not print integers of more than 4300 digits.
        return "a number of thousands of digits"
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text)} characters)"


class UndefinedVariable(ValueError):
    """A text uses an environment variable that is not set; the message is the variable's name."""


def expand_variables(text: str) -> str:
    """Replace a leading `~` and each `$NAME` or `${NAME}` in `text`; `$$` stands for `$`.

    Raises:
        UndefinedVariable: A variable is not set.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            return "$"
        # Unlike os.path.expandvars, which leaves such a name as it is: a path with a `$` in it would follow.
        if name not in os.environ:
            raise UndefinedVariable(name)
        return os.environ[name]

    return _VARIABLE.sub(value, os.path.expanduser(text))


def _figure(value: float) -> str:
    # `g` alone would write a million as 1e+06.
    if value == int(value):
        return str(int(value))
    return f"{value:g}"


def _properties(name: str) -> dict[str, Any]:
    section, key = name.split(".")
    properties: dict[str, Any] = _schema(section)["properties"][key]
    return properties


# Cached: pydantic builds it anew at each call, and each message asks for it.
@cache
def _schema(section: str) -> dict[str, Any]:
    return _MODELS[section].model_json_schema()
