"""Published scaling tables as printed: `published.json` names the source of each."""

import json
from pathlib import Path
from typing import Any

TABLES: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_suffix(".json").read_text()
)


def column(table: str, name: str) -> dict[int, float]:
    """Values of a column by number of workers."""
    found = TABLES[table]
    index = found["columns"].index(name)
    return {row[0]: row[index] for row in found["rows"]}
