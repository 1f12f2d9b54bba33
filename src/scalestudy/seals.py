"""Checksums inside JSON records: a field "sha256" over the rest, so that a person can still read the file."""

import hashlib
import json
import re
from typing import Any

KEY = "sha256"
DEEPEST = 100
"""Tables and lists inside each other; no record of ours comes near."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_LAST = re.compile(rb',\s*"%s":\s*"[0-9a-f]{64}"\s*}\s*$' % KEY.encode())


class BrokenSeal(ValueError):
    """A record that is not what was written; the text says how."""


def digest(table: dict[str, Any]) -> str:
    """SHA-256 of a table's canonical JSON (sorted keys, no spaces, ASCII), its own checksum left out."""
    rest = {key: value for key, value in table.items() if key != KEY}
    return hashlib.sha256(_CANONICAL.encode(rest).encode()).hexdigest()


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
    table = loaded(data)
    return table, checked(data, table)


def loaded(data: bytes) -> dict[str, Any]:
    """The table of a JSON record with its checksum, not held against it yet.

    Raises:
        BrokenSeal: It is no JSON table.
    """
    try:
        table = json.loads(data)
    except RecursionError:
        raise BrokenSeal(f"it is nested deeper than {DEEPEST} times") from None
    except ValueError as error:
        raise BrokenSeal("it is empty" if not data.strip() else f"it is no whole JSON: {error}") from None
    if not isinstance(table, dict):
        raise BrokenSeal("it is no JSON table")
    return table


def checked(data: bytes, table: dict[str, Any]) -> bool:
    """Take the checksum out of a record's table, and hold it against the rest; whether there was one.

    Raises:
        BrokenSeal: It is not that of the rest.
    """
    # Most records hold too few brackets to be deep, and counting is quick.
    if data.count(b"{") + data.count(b"[") > DEEPEST and deeper_than(table, DEEPEST):
        raise BrokenSeal(f"it is nested deeper than {DEEPEST} times")
    found = table.pop(KEY, None)
    if found is not None and found != digest(table):
        raise BrokenSeal("its checksum is not that of its content")
    return found is not None


def without_seal(data: bytes, table: dict[str, Any]) -> bytes:
    """The JSON of a sealed table without its checksum; `table` is what it holds, as `opened` gives it."""
    last = _LAST.search(data, max(0, len(data) - 200))
    return data[: last.start()] + b"}" if last else json.dumps(table).encode()


def deeper_than(value: Any, most: int) -> bool:
    """Whether lists and tables stand inside each other more than so many times."""
    level = [value]
    for _ in range(most + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
