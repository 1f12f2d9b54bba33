"""Which other columns of a table are swept keys: those that tell apart rows which nothing else does."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.table import columns
from scalestudy.features.imported.columns import OVERLOOKED, Column, squeezed

if TYPE_CHECKING:
    from scalestudy.features.imported.rows import Row

_OURS = frozenset(columns())
"""Columns of our own table, which no swept key may be called like."""
_ENDS = ("_low", "_high")


def swept_columns(
    rows: "Sequence[Row]", found: Mapping[str, Column], header: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Names of the swept columns, and of those that are not used.

    A column is swept if it differs among rows of one strategy and worker count, and its values come back at
    other worker counts. What differs from row to row is a measurement, what goes with the workers (nodes)
    belongs to them, and what is the same everywhere tells nothing apart.
    """
    used = {column.name for column in found.values()}
    others = [name for name in header if name not in used]
    swept = [name for name in others if _may_be(name) and _is_swept(name, rows, found)]
    return swept, [name for name in others if name not in swept and name.strip()]


def _may_be(name: str) -> bool:
    short = squeezed(name)
    return bool(short) and short not in OVERLOOKED | _OURS and not short.endswith(_ENDS)


def _is_swept(name: str, rows: "Sequence[Row]", found: Mapping[str, Column]) -> bool:
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    counts: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        value = _cell(row.cells.get(name))
        workers, strategy = (
            _cell(row.cells.get(found[role].name)) if role in found else "" for role in _POINT
        )
        places[workers, strategy].add(value)
        counts[value].add(workers)
    if len(counts) < 2 or all(len(values) == 1 for values in places.values()):
        return False
    if len({workers for workers, _ in places}) == 1:
        return len(counts) * 2 <= len(rows) or len(rows) <= 2 * len(counts) <= 40
    return 2 * sum(len(found_at) > 1 for found_at in counts.values()) >= len(counts)


_POINT = ("workers", "strategy")


def _cell(value: Any) -> str:
    return "" if value is None else str(value).strip()
