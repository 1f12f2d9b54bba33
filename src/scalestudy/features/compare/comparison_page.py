"""A comparison of two studies as a document and as JSON."""

import json
from collections.abc import Sequence
from typing import Any

from scalestudy.analysis.estimate import Estimate
from scalestudy.features.compare.comparison import (
    QUANTITIES,
    Compared,
    Comparison,
    Quantity,
)
from scalestudy.features.compare.sides import unlike
from scalestudy.report import figure_data
from scalestudy.report.document import (
    Block,
    Cell,
    Document,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
    headings_of,
)
from scalestudy.report.notes import environments
from scalestudy.report.number_format import decimals, time_unit, with_interval

METHOD = (
    "Ratios are of geometric means over runs, unpaired, with Welch's 95 % interval on logarithms."
    " Differences of quality are paired by seed if both sides asked for the same task, data and training,"
    " so that one seed means one split and one start. Spreads are moderated over both sides for paired"
    " differences, and within each side otherwise. A difference is real if its P value, corrected by"
    " Holm's method (1979) for all comparisons of this page, is below 0.05; intervals are not corrected."
)


def compare_document(comparison: Comparison) -> Document:
    """Return the page: what differs, and which differences exceed chance."""
    first, second = comparison.first, comparison.second
    blocks: list[Block] = [Paragraph(summary(comparison))]
    if comparison.rows:
        blocks.append(_differences(comparison))
    ours = dict(environments(first.findings.runs))
    theirs = dict(environments(second.findings.runs))
    differing = (*comparison.asked, *unlike(first, second, ours, theirs))
    if differing:
        headings = (
            *headings_of("What:"),
            Heading(first.name, numeric=False),
            Heading(second.name, numeric=False),
        )
        table = Table(headings, differing, "Settings, machines, versions")
        blocks.append(Section("Other differences", (table,)))
    how = [METHOD]
    if comparison.unpaired:
        how.append(f"Qualities are not paired by seed: {comparison.unpaired}.")
    blocks.append(Section("How this was compared", (Items(tuple(how)),)))
    return Document(
        f"{first.name} against {second.name}",
        tuple(blocks),
        "Comparison of studies",
    )


def compare_json(comparison: Comparison) -> str:
    """Return a record for each row and quantity, and the settings that differ."""
    asked = []
    for key, *values in comparison.asked:
        asked.append({"key": key, "values": values})
    document = {
        "schema_version": 1,
        "studies": [comparison.first.name, comparison.second.name],
        "summary": summary(comparison),
        "rows": [_record(row, comparison) for row in comparison.rows],
        "asked": asked,
    }
    # `NaN` is no JSON, and many programs refuse it: what is unknown is null.
    text = json.dumps(
        document,
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )
    return f"{text}\n"


def _record(row: Compared, comparison: Comparison) -> dict[str, Any]:
    """Return a record; `change` is a ratio, or a difference for quality."""
    before, after = row.values
    real = None
    if row.chance is not None:
        real = row.real
    return {
        "strategy": row.key.strategy,
        "workers": row.key.workers,
        "swept": row.key.swept or None,
        "quantity": row.quantity,
        "reference": comparison.first.name,
        "other": comparison.second.name,
        "reference_value": before.value,
        "reference_low": before.low,
        "reference_high": before.high,
        "other_value": after.value,
        "other_low": after.low,
        "other_high": after.high,
        "change": row.change.value,
        "change_low": row.change.low,
        "change_high": row.change.high,
        "p": row.chance,
        "p_corrected": row.corrected,
        "real": real,
        "verdict": verdict(row, comparison),
        "paired": row.paired,
    }


def summary(comparison: Comparison) -> str:
    """State how many differences exceed chance."""
    held = [row for row in comparison.rows if not row.why_not]
    if not comparison.rows:
        return (
            "The studies share no row: no strategy ran on the same number of workers."
        )
    if not held:
        return "None of the shared rows can be compared; the tables below give the reasons."
    tested = [row for row in held if row.chance is not None]
    if not tested:
        return (
            f"{len(held)} values can be compared, but without repeated runs chance cannot be ruled out. Sweep"
            " two or more seeds on each side."
        )
    real = [row for row in tested if row.real]
    count = f"Of {len(tested)} tested differences"
    if not real:
        return f"{count}, none is more than chance."
    verb = "are"
    if len(real) == 1:
        verb = "is"
    return f"{count}, {len(real)} {verb} more than chance."


def verdict(row: Compared, comparison: Comparison) -> str:
    """Describe a difference in a few words."""
    if row.why_not:
        return f"not compared: {row.why_not}"
    if row.chance is None:
        return "single runs: unknown"
    if not row.real:
        return "no difference shown"
    better = comparison.first.findings.measures.senses[row.key].better
    if row.quantity == "rate":
        more, less = "faster", "slower"
    elif row.quantity == "training_seconds":
        more, less = "longer", "shorter"
    elif better == "higher":
        more, less = "better", "worse"
    elif better == "lower":
        more, less = "worse", "better"
    else:
        more, less = "higher", "lower"
    # Qualities are compared by their difference, the others by their ratio.
    unchanged = 1.0
    if row.quantity == "quality":
        unchanged = 0.0
    change = row.change.value or unchanged
    if change > unchanged:
        return more
    return less


def _differences(comparison: Comparison) -> Table:
    """Return a table with a row for each quantity of each shared row, grouped by quantity."""
    # Many rows share a reason, which is too long for a cell.
    number_of: dict[str, int] = {}
    for row in comparison.rows:
        if row.why_not:
            number_of.setdefault(row.why_not, len(number_of) + 1)
    cells: list[tuple[str | Cell, ...]] = []
    for quantity in QUANTITIES:
        rows = [row for row in comparison.rows if row.quantity == quantity]
        known = []
        for row in rows:
            for estimate in row.values:
                if estimate.value is not None:
                    known.append(estimate.value)
        # One unit and one number of digits for a quantity, so that its rows can be compared by eye.
        title, length = _title(comparison, quantity, known)
        digits = 3
        if quantity != "quality":
            digits = decimals([value / length for value in known])
        for row in rows:
            before, after = row.values
            judged = verdict(row, comparison)
            if row.why_not:
                judged = f"not compared [{number_of[row.why_not]}]"
            line = (
                title,
                figure_data.bar(row.key),
                _cell(before.scaled(1 / length), digits),
                _cell(after.scaled(1 / length), digits),
                _cell(row.change, 3),
                judged,
            )
            cells.append(line)
    footnotes = tuple([f"{reason}." for reason in number_of])
    headings = (
        *headings_of("Quantity:", "Row:"),
        Heading(comparison.first.name),
        Heading(comparison.second.name),
        *headings_of("Change (ratio; of quality: difference)", "Verdict:"),
    )
    return Table(headings, tuple(cells), footnotes=footnotes, name="differences")


def _cell(estimate: Estimate, digits: int) -> Cell:
    if estimate.value is None:
        return Cell("")
    # Sorted by the whole value: rounded ones may be equal.
    return Cell(with_interval(estimate, digits), sort=repr(estimate.value))


def _title(
    comparison: Comparison,
    quantity: Quantity,
    known: Sequence[float],
) -> tuple[str, float]:
    """Return a quantity with its unit, and the divisor that converts values to this unit."""
    if quantity == "quality":
        return "quality", 1.0
    if quantity == "training_seconds":
        unit, length = time_unit(known)
        return f"training, {unit}", length
    # Epochs, if no row knows its number of samples.
    bases = set()
    for row in comparison.rows:
        bases.add(comparison.first.findings.measures.bases[row.key])
    if bases == {"epoch"}:
        return "epochs/h", 1 / 3600
    return "samples/s", 1.0
