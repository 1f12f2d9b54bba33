"""Checksums inside JSON records: a field "sha256" over the rest, so that a person can still read the file."""

import hashlib
import json
from typing import Any

KEY = "sha256"
DEEPEST = 100
"""Tables and lists inside each other; no record of ours comes near."""


class BrokenSeal(ValueError):
    """A record that is not what was written; the text says how."""


def digest(table: dict[str, Any]) -> str:
    """SHA-256 of a table's canonical JSON (sorted keys, no spaces, ASCII), its own checksum left out."""
    rest = {key: value for key, value in table.items() if key != KEY}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(text: str, indent: int | None = 1) -> str:
    """The JSON table `text` with its checksum as last field.

    The checksum is of what a reader gets from the text, so no writer's form of a number matters.
    """
    table = json.loads(text)
    return json.dumps({**table, KEY: digest(table)}, indent=indent, ensure_ascii=False)


def opened(data: bytes) -> tuple[dict[str, Any], bool]:
    """The table of a JSON record without its checksum, and whether it had one (older records have none).

    Raises:
        BrokenSeal: It is no JSON table, or its checksum is not that of the rest.
    """
    try:
        table = json.loads(data)
    except RecursionError:
        raise BrokenSeal(f"it is nested deeper than {DEEPEST} times") from None
    except ValueError as error:
        raise BrokenSeal("it is empty" if not data.strip() else f"it is no whole JSON: {error}") from None
    if not isinstance(table, dict):
        raise BrokenSeal("it is no JSON table")
    if deeper_than(table, DEEPEST):
        raise BrokenSeal(f"it is nested deeper than {DEEPEST} times")
    found = table.pop(KEY, None)
    if found is not None and found != digest(table):
        raise BrokenSeal("its checksum is not that of its content")
    return table, found is not None


def deeper_than(value: Any, most: int) -> bool:
    """Whether lists and tables stand inside each other more than so many times."""
    level = [value]
    for _ in range(most + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
