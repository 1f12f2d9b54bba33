"""The keys of a study file: which there are, what each takes, and what to say of a wrong one."""

import difflib
import json
from collections.abc import Iterable
from datetime import date, time
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from scalestudy.study.formula import WrongFormula
from scalestudy.study.settings import (
    DataSettings,
    LaunchSettings,
    Section,
    Seed,
    Strategy,
    TrainSettings,
    Workers,
)

SECTIONS: dict[str, type[Section]] = {"data": DataSettings, "train": TrainSettings, "launch": LaunchSettings}
_SWEPT: dict[str, Any] = {
    "strategy": Strategy,
    "workers": Workers,
    "seed": Seed,
}
SWEEP_KEYS = tuple(_SWEPT)
TOP_KEYS = ("task", "name", "engine", "quality_margin", "data", "train", "sweep", "launch")


LONGEST = 200
"""Characters of a value that a message shows."""


class WrongValue(ValueError):
    """A value that its key does not take; the text says what would do.

    Args:
        expected: What would.
        action: What to do about it, where more is known than the key.
    """

    def __init__(self, expected: str, action: str = "") -> None:
        super().__init__(expected)
        self.action = action


def full_name(key: str) -> str | None:
    """Dotted name of a key given bare or dotted: "epochs" -> "train.epochs"; None if there is none.

    The bare "seed" is the sweep's own and therefore none of these.
    """
    section, _, rest = key.rpartition(".")
    if section:
        return key if section in SECTIONS and rest in SECTIONS[section].model_fields else None
    found = [name for name, model in SECTIONS.items() if key in model.model_fields]
    return f"{found[0]}.{key}" if found and key not in SWEEP_KEYS else None


def suggestion(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def checked(name: str, value: Any) -> Any:
    """`value` as the key with this dotted name takes it, in JSON's types (a tuple stays a list).

    Raises:
        WrongValue: If the key does not take it.
    """
    section, key = name.split(".")
    model = SECTIONS[section]
    schema = _properties(section)[key]
    if isinstance(value, dict) and not any(
        part.get("type") == "object" for part in schema.get("anyOf", [schema])
    ):
        raise WrongValue(wanted(schema))
    plain = _as_json(value, wanted(schema))
    try:
        # JSON's strictness: no "8" for 8 and no true for 1, but a list for a pair.
        valid = model.model_validate_json(f"{{{json.dumps(key)}: {plain}}}", strict=True)
    except ValidationError as error:
        raise (
            _wrong_formula(error) or WrongValue(_said(error) or wanted(_properties(section)[key]))
        ) from None
    return valid.model_dump(mode="json")[key]


def _wrong_formula(error: ValidationError) -> WrongValue | None:
    causes = [each.get("ctx", {}).get("error") for each in error.errors()]
    wrong = next((cause for cause in causes if isinstance(cause, WrongFormula)), None)
    return WrongValue(wrong.expected, wrong.action) if wrong else None


def checked_sweep(key: str, value: Any) -> Any:
    """`value` as an item of the sweep's own `strategy`, `workers` or `seed`.

    Raises:
        WrongValue: If it is none.
    """
    adapter = _sweep_adapter(key)
    if isinstance(value, dict):
        raise WrongValue(wanted(adapter.json_schema()))
    plain = _as_json(value, wanted(adapter.json_schema()))
    try:
        return adapter.validate_json(plain, strict=True)
    except ValidationError:
        raise WrongValue(wanted(adapter.json_schema())) from None


def described(name: str) -> str:
    """What the key with this dotted name takes, in words."""
    return wanted(_property(name))


def choices(name: str) -> list[str]:
    """Words that the key takes, where it takes words."""
    schema = _sweep_adapter(name).json_schema() if name in SWEEP_KEYS else _property(name)
    return _words(schema)


def wanted(schema: dict[str, Any]) -> str:
    """What a JSON schema asks for, in words: "a whole number above 0"."""
    if "wanted" in schema:
        return str(schema["wanted"])
    if "anyOf" in schema:
        parts = [wanted(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(parts)
    if "enum" in schema:
        return "one of " + ", ".join(f'"{choice}"' for choice in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if schema.get("type") == "array":
        items = schema["prefixItems"]
        return f"a list of {len(items)} ({wanted(items[0])} each)"
    words = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
    return words.get(schema.get("type", ""), "a quoted text") + _bounds(schema)


def shown(value: Any) -> str:
    """A value as a study file would write it, cut where it is long."""
    try:
        text = (
            str(value)
            if isinstance(value, date | time)
            else json.dumps(value, default=str, ensure_ascii=False)
        )
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def _said(error: ValidationError) -> str | None:
    """What a key of its own kind says would do; None of types and bounds."""
    own = [each["ctx"]["error"] for each in error.errors() if each["type"] == "value_error"]
    return str(own[0]) if own else None


def _as_json(value: Any, what: str) -> str:
    """The value as JSON; what has no such form (a date, a number without end) no key takes."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        raise WrongValue(what) from None


def _bounds(schema: dict[str, Any]) -> str:
    words = {
        "exclusiveMinimum": "above",
        "minimum": "of at least",
        "exclusiveMaximum": "below",
        "maximum": "at most",
    }
    parts = [f"{word} {_figure(schema[key])}" for key, word in words.items() if key in schema]
    return f" {' and '.join(parts)}" if parts else ""


def _figure(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _words(schema: dict[str, Any]) -> list[str]:
    parts = schema.get("anyOf", [schema])
    return [word for part in parts for word in part.get("enum", [part["const"]] if "const" in part else [])]


def _property(name: str) -> dict[str, Any]:
    section, key = name.split(".")
    return _properties(section)[key]


@cache
def _properties(section: str) -> dict[str, dict[str, Any]]:
    schema: dict[str, dict[str, Any]] = SECTIONS[section].model_json_schema()["properties"]
    return schema


@cache
def _sweep_adapter(key: str) -> TypeAdapter[Any]:
    return TypeAdapter(_SWEPT[key])
