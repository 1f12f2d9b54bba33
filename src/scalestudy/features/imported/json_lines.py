"""JSON lines, a list of objects, and our own table.json."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scalestudy.errors import UserError
from scalestudy.features.imported import own_table
from scalestudy.features.imported.base import Head, Reader, Reading, Wanted
from scalestudy.features.imported.rows import Row, read_rows
from scalestudy.features.imported.text import lines, shown

_BEGINS = re.compile(r"[\ufeff\s]*(\{|\[\s*[{\]])")
MOST_BYTES = 256 * 2**20
"""Of a document that has to be read whole."""


def _recognises(head: Head) -> bool:
    return _BEGINS.match(head.text) is not None


def _read(path: Path, wanted: Wanted) -> Reading:
    document = _whole(path)
    if isinstance(document, dict) and isinstance(document.get("rows"), list):
        rows = document["rows"]
        if rows and isinstance(rows[0], dict) and own_table.is_one(list(rows[0])):
            return own_table.read_json(path, document)
        document = rows
    if isinstance(document, list):
        table = [Row(place, _flat(each)) for place, each in enumerate(document, 1) if isinstance(each, dict)]
        return read_rows(path.name, "JSON", table, wanted)
    skipped: list[str] = []
    table = list(_objects(path, skipped))
    found = read_rows(path.name, "JSON lines", table, wanted)
    return Reading(found.facts, found.remarks, (*skipped, *found.skipped))


def _whole(path: Path) -> Any:
    """The document, where the file is one; None where it is lines."""
    if path.stat().st_size > MOST_BYTES:
        return None
    text = "\n".join(lines(path))
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text.lstrip().startswith("["):
            raise UserError(
                "a JSON document", f"one that is broken in {shown(path.name)}", "Mend or leave out the file."
            ) from None
        return None


def _objects(path: Path, skipped: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            yield Row(number, _flat(found))
        else:
            skipped.append(f"line {number}: no JSON object")


def _flat(found: Mapping[str, Any], before: str = "", depth: int = 0) -> dict[str, Any]:
    """Nested objects by dotted names; lists are left out."""
    cells: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict) and depth < 4:
            cells |= _flat(value, f"{before}{name}.", depth + 1)
        elif not isinstance(value, list | dict):
            cells[before + str(name)] = value
    return cells


READER = Reader("JSON or JSON lines", _recognises, _read, "*.jsonl, *.json, table.json")
