"""Our own table.csv and table.json, of this or another study: rows are means, whose intervals stay behind."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalestudy.analysis.runs import Source
from scalestudy.analysis.table import columns
from scalestudy.features.imported.base import Facts, Reading
from scalestudy.features.imported.rows import Row
from scalestudy.features.imported.text import shown
from scalestudy.features.imported.values import number, whole

_OURS = frozenset(columns())
_MARKS = frozenset(("strategy", "workers", "runs", "global_batch", "speedup_training", "quality_note"))


def is_one(names: Sequence[str]) -> bool:
    """Whether these columns are those of our table."""
    return set(names) >= _MARKS


def read(file: str, rows: Sequence[Row]) -> Reading:
    """Runs of our table, one for each of its rows."""
    names = list(rows[0].cells) if rows else []
    swept = names[names.index("workers") + 1 : names.index("runs")] if rows else []
    facts, skipped = [], []
    for row in rows:
        workers = whole(row.cells.get("workers"))
        if workers is None or workers < 1:
            skipped.append(f"line {row.line}: {shown(str(row.cells.get('workers')))} is no number of workers")
        else:
            source = Source(file, (row.line, row.line), "table of Scalestudy")
            facts.append(replace(_facts(row.cells, swept), source=source, workers=workers))
    several = sum((whole(row.cells.get("runs")) or 1) > 1 for row in rows)
    remarks = ["A table of Scalestudy: names and units are its own."]
    if several:
        remarks.append(
            f"{several} rows are means of several runs, whose intervals cannot be taken from here."
        )
    return Reading(tuple(facts), tuple(remarks), tuple(skipped))


def _facts(cells: Mapping[str, Any], swept: Sequence[str]) -> Facts:
    def positive(name: str) -> float | None:
        found = number(cells.get(name))
        return found if found is not None and 0 < found < float("inf") else None

    better = cells.get("better")
    return Facts(
        Source(""),
        strategy=shown(str(cells.get("strategy") or "")) or None,
        seconds=positive("training_seconds"),
        throughput=positive("throughput"),
        quality=number(cells.get("quality")),
        metric=shown(str(cells.get("metric") or "")),
        better="higher" if better == "higher" else "lower" if better == "lower" else None,
        global_batch=whole(cells.get("global_batch")) or None,
        gpu_percent=number(cells.get("gpu_percent")),
        oversubscribed=shown(str(cells.get("oversubscribed") or "")) or None,
        swept={shown(name): _plain(cells.get(name)) for name in swept},
    )


def _plain(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return shown(value)
    return found if isinstance(found, bool | int | float | str) else shown(value)


def read_json(path: Path, document: Mapping[str, Any]) -> Reading:
    """Runs of our table.json."""
    rows = [dict(row) for row in document.get("rows", []) if isinstance(row, dict)]
    names = ["strategy", "workers", *(n for n in (rows[0] if rows else {}) if n not in _OURS | {"seeds"})]
    ordered = [{n: row.get(n) for n in (*names, *(o for o in row if o not in names))} for row in rows]
    found = read(path.name, [Row(place, row) for place, row in enumerate(ordered, start=1)])
    return replace(
        found,
        facts=tuple(replace(each, source=replace(each.source, lines=None)) for each in found.facts),
    )
