"""Runs out of the rows of a table, whatever form the table had."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scalestudy.analysis.runs import Source
from scalestudy.errors import UserError
from scalestudy.features.imported import columns as names
from scalestudy.features.imported.base import Facts, Reading, Wanted
from scalestudy.features.imported.columns import Column
from scalestudy.features.imported.swept import swept_columns
from scalestudy.features.imported.text import shown
from scalestudy.features.imported.units import factor, said
from scalestudy.features.imported.values import clock, number, whole

_WHOLE = ("seed", "epochs", "updates", "per_worker_batch", "global_batch", "samples", "labels")


@dataclass(frozen=True)
class Row:
    """A line of a table: cells by column, as texts or values."""

    line: int
    cells: Mapping[str, Any]


def read_rows(file: str, kind: str, rows: Sequence[Row], wanted: Wanted, comma: bool = False) -> Reading:
    """Runs of a table, one a row.

    Args:
        file: Name of the file, for messages.
        kind: Its form.
        rows: All that could be split into cells.
        wanted: What the user says.
        comma: Whether the comma is the decimal sign.

    Raises:
        UserError: No column says how many workers or how fast, or two could.
    """
    header = list(dict.fromkeys(name for row in rows for name in row.cells))
    found = _found(file, header, wanted)
    settled = _settled(found, rows, comma)
    swept, unused = swept_columns(rows, found, header)
    facts, skipped = [], []
    for row in rows:
        made = _facts(row, found, swept, wanted, comma)
        if isinstance(made, str):
            skipped.append(f"line {row.line}: {made}")
        else:
            facts.append(replace(made, source=Source(file, (row.line, row.line), kind)))
    remarks = [_understood(found, wanted), *settled]
    if swept:
        remarks.append(f"Other columns that tell rows apart: {', '.join(shown(name) for name in swept)}.")
    if unused:
        remarks.append(f"Not used: {', '.join(shown(name) for name in unused[:12])}.")
    return Reading(tuple(facts), tuple(remarks), tuple(skipped))


def _found(file: str, header: Sequence[str], wanted: Wanted) -> dict[str, Column]:
    found = names.find(header, wanted.columns)
    if "quality" not in found:
        quality = quality_column(header, wanted)
        found |= {"quality": Column(quality)} if quality else {}
    listed = ", ".join(shown(name) for name in header[:20])
    if "epoch" in found and "workers" in found:
        raise UserError(
            f"{shown(file)} with a row for each run",
            "one with a row for each epoch of several runs",
            "Keep the last row of each run, or write a file for each: log_8.csv.",
        )
    if "workers" not in found and wanted.workers is None:
        raise UserError(
            f"a column of {shown(file)} that says how many workers",
            f"the columns {listed}",
            "Name it: --column workers=NAME, or say the count for all: --workers N.",
        )
    if not found.keys() & {"seconds", "epoch_seconds", "throughput", "quality", "updates"}:
        raise UserError(
            f"a column of {shown(file)} that says seconds, throughput or quality",
            f"the columns {listed}",
            "Name it: --column seconds=NAME, --column throughput=NAME.",
        )
    return found


def quality_column(header: Sequence[str], wanted: Wanted) -> str | None:
    """The column that is the quality, or None.

    Raises:
        UserError: Several could be.
    """
    candidates = names.qualities(header)
    if wanted.metric is not None:
        asked = names.squeezed(wanted.metric)
        named = [name for name in header if names.squeezed(name) == asked]
        return next(iter(named or [name for name in candidates if names.metric_name(name) == asked]), None)
    if len(candidates) > 1:
        raise UserError(
            "one column that is the quality",
            ", ".join(shown(name) for name in candidates),
            f"Say which: --metric {shown(candidates[0])}",
        )
    return next(iter(candidates), None)


def _facts(
    row: Row, found: Mapping[str, Column], swept: Sequence[str], wanted: Wanted, comma: bool
) -> Facts | str:
    """What a row says, or why it cannot be read."""

    def cell(role: str) -> Any:
        value = row.cells.get(found[role].name) if role in found else None
        return (
            None if value is None or str(value).strip().lower() in ("", "n/a", "na", "none", "-") else value
        )

    workers = whole(cell("workers"), comma) if "workers" in found else wanted.workers
    if workers is None or not 0 < workers < 10**7:
        return f"{shown(str(cell('workers')))} is no number of workers"
    values: dict[str, Any] = {}
    for role in ("seconds", "epoch_seconds", "throughput"):
        if role in found and (text := cell(role)) is not None:
            value = clock(text) if role != "throughput" and ":" in str(text) else number(text, comma)
            if value is None or not math.isfinite(value) or value <= 0:
                return f"{role} {shown(str(text))} is no positive number"
            scaled = value if ":" in str(text) else value * factor(role, found[role], wanted)
            values[role] = scaled * workers if found[role].per_device else scaled
    for role in _WHOLE:
        count = whole(cell(role), comma)
        values[role] = count if count is not None and (role == "seed" or count > 0) else None
    values["epochs"] = values["epochs"] or wanted.epochs
    values["samples"] = values["samples"] or wanted.samples
    steps = whole(cell("steps"), comma)
    if values["updates"] is None and steps and values["epochs"]:
        values["updates"] = steps * values["epochs"]
    percent = number(cell("gpu_percent"), comma)
    better = cell("better")
    return Facts(
        source=Source(""),
        workers=workers,
        strategy=_text(cell("strategy")),
        quality=number(cell("quality"), comma),
        metric=_text(cell("metric")) or _metric(found, wanted),
        better=wanted.better or (better if better in ("higher", "lower") else None),
        gpu_percent=percent if percent is not None and 0 <= percent <= 100 else None,
        oversubscribed=_text(cell("oversubscribed")),
        swept={shown(name): _swept(row.cells.get(name), comma) for name in swept},
        **values,
    )


def _text(value: Any) -> str | None:
    return None if value is None else shown(str(value).strip()) or None


def _metric(found: Mapping[str, Column], wanted: Wanted) -> str:
    if "quality" not in found:
        return ""
    name = found["quality"].name
    if names.squeezed(name) in ("quality", "score") and wanted.metric:
        return shown(wanted.metric)
    return names.metric_name(name)


def _swept(value: Any, comma: bool) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    count = whole(value, comma)
    if count is not None:
        return count
    found = number(value, comma)
    return shown(str(value).strip()) if found is None or not math.isfinite(found) else found


def _understood(found: Mapping[str, Column], wanted: Wanted) -> str:
    parts = [
        f"{role} from {shown(column.name)}{said(role, column, wanted)}" for role, column in found.items()
    ]
    return f"Columns: {', '.join(parts)}."


def _settled(found: dict[str, Column], rows: Sequence[Row], comma: bool) -> list[str]:
    """Whether a column called batch grows with the workers, and so is the global one; else what to say."""
    batch, workers = found.pop("batch", None), found.get("workers")
    if batch is None or found.keys() & {"per_worker_batch", "global_batch"}:
        return []
    pairs = {
        (number(row.cells.get(batch.name), comma), number(row.cells.get(workers.name), comma))
        for row in rows
        if workers is not None
    }
    shares = {size / count for size, count in pairs if size and count}
    if len({count for _, count in pairs}) > 1 and len(shares) == 1:
        found["global_batch"] = batch
        return [f"{shown(batch.name)} grows with the workers, so it is the batch of all together."]
    name = shown(batch.name)
    return [
        f"Whether {name} is that of a worker or of all together is not said, so it is not used:"
        f" --column per_worker_batch={name} or --column global_batch={name} says it."
    ]
