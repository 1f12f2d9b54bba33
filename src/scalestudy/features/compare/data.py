"""A comparison for programs: a record a quantity of a row, as CSV and as JSON."""

import csv
import json
from io import StringIO
from typing import Any

from scalestudy.features.compare.comparison import Comparison
from scalestudy.features.compare.page import summary, verdict
from scalestudy.features.compare.rows import Compared
from scalestudy.report.tabular import plain

COLUMNS = (
    *("strategy", "workers", "swept", "quantity", "reference", "other"),
    *("reference_value", "reference_low", "reference_high", "other_value", "other_low", "other_high"),
    *("change", "change_low", "change_high", "p", "p_corrected", "real", "verdict", "paired", "notes"),
)


def compare_records(comparison: Comparison) -> list[dict[str, Any]]:
    """One record a row, a quantity and an other side; `change` is a ratio, of qualities a difference."""
    return [_record(row, comparison) for row in comparison.rows]


def compare_csv(comparison: Comparison) -> str:
    """The records as CSV; empty cells where nothing is known."""
    stream = StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for record in compare_records(comparison):
        writer.writerow({name: plain(value) for name, value in record.items()})
    return stream.getvalue()


def compare_json(comparison: Comparison) -> str:
    """The records with what rankings say and what was asked for differently."""
    names = [side.name for side in comparison.sides]
    document = {
        "schema_version": 1,
        "studies": names,
        "summary": summary(comparison),
        "sentences": list(comparison.sentences),
        "rows": compare_records(comparison),
        "rankings": [
            {
                "study": name,
                "workers": found.workers,
                "swept": json.loads(found.variant),
                "tiers": found.tiers,
                "certain": found.certain,
            }
            for name, each in zip(names, comparison.rankings, strict=True)
            for found in each.values()
        ],
        "asked": [{"key": key, "values": values} for key, values in comparison.asked],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _record(row: Compared, comparison: Comparison) -> dict[str, Any]:
    names = [side.name for side in comparison.sides]
    (first, second), change = row.values, row.change
    values = (
        *(row.key.strategy, row.key.workers, row.key.swept or None, row.quantity, names[0], names[row.other]),
        *(first.value, first.low, first.high, second.value, second.low, second.high),
        *(change.value, change.low, change.high, row.chance, row.corrected),
        row.real if row.chance is not None else None,
        verdict(row, comparison),
        row.paired,
        "; ".join(row.notes) or None,
    )
    return dict(zip(COLUMNS, values, strict=True))
