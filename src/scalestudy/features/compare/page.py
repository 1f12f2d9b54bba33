"""A comparison of studies as a document, as CSV and as JSON."""

import csv
import json
from collections.abc import Sequence
from io import StringIO
from itertools import chain
from typing import Any

from scalestudy.analysis.statistics import Estimate
from scalestudy.features.compare.comparison import QUANTITIES, Compared, Comparison, Quantity
from scalestudy.report import series
from scalestudy.report.document import (
    Block,
    Cell,
    Document,
    Drawing,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
)
from scalestudy.report.environment import environments
from scalestudy.report.figure import WIDTH, Figure, data, figure, tooltip
from scalestudy.report.format import decimals, time_unit, with_interval
from scalestudy.report.style import COLOURS
from scalestudy.report.tabular import plain

ROW = 24
"""Height of a row of the figure, in pixels."""
METHOD = (
    "Ratios are of geometric means over runs, unpaired, with Welch's 95 % interval on logarithms."
    " Differences of quality are paired by seed if both sides asked for the same task, data and training,"
    " so that one seed means one split and one start. Spreads are pooled over both sides for paired"
    " differences, and within each side otherwise. A difference is real if its P value, corrected by"
    " Holm's method (1979) for all comparisons of this page, is below 0.05; intervals are not corrected."
)
COLUMNS = (
    *("strategy", "workers", "swept", "quantity", "reference", "other"),
    *("reference_value", "reference_low", "reference_high", "other_value", "other_low", "other_high"),
    *("change", "change_low", "change_high", "p", "p_corrected", "real", "verdict", "paired", "notes"),
)


def compare_document(comparison: Comparison) -> Document:
    """Return the page: what differs, and which differences exceed chance."""
    names = [side.name for side in comparison.sides]
    blocks: list[Block] = [Paragraph(summary(comparison))]
    drawn = ratio_figure(comparison)
    blocks += [Drawing(drawn)] if drawn else []
    blocks += [_differences(comparison)] if comparison.rows else []
    unlike = [*comparison.asked, *_unlike_facts(comparison)]
    if unlike:
        headings = (Heading("What", numeric=False), *(Heading(name, numeric=False) for name in names))
        rows = tuple((name, *values) for name, values in unlike)
        blocks.append(Section("Other differences", (Table(headings, rows, "Settings, machines, versions"),)))
    alone = [
        f"Only in {name}: {', '.join(key.label for key in keys)}."
        for name, keys in zip(names, comparison.alone, strict=True)
        if keys
    ]
    blocks += [Section("Not compared", (Items(tuple(alone)),))] if alone else []
    unpaired = [
        f"Qualities of {name} are not paired by seed: {why}."
        for name, why in zip(names[1:], comparison.unpaired, strict=True)
        if why
    ]
    blocks.append(Section("How this was compared", (Items((METHOD, *unpaired)),)))
    return Document(f"{names[0]} against {' and '.join(names[1:])}", tuple(blocks), "Comparison of studies")


def _unlike_facts(comparison: Comparison) -> list[tuple[str, tuple[str, ...]]]:
    """Return the machines and versions that differ, with the value of each side; "" if unknown."""
    facts = [
        {name: "" if name in side.withheld else value for name, value in environments(side.findings.runs)}
        for side in comparison.sides
    ]
    unlike = []
    for name in dict.fromkeys(chain(*facts)):
        values = tuple(side.get(name, "") for side in facts)
        told = [
            value for side, value in zip(comparison.sides, values, strict=True) if name not in side.withheld
        ]
        if len(set(told)) > 1:
            unlike.append((name, values))
    return unlike


def compare_csv(comparison: Comparison) -> str:
    """Return a record for each row, quantity and other side; unknown values are empty cells."""
    stream = StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in comparison.rows:
        writer.writerow({name: plain(value) for name, value in _record(row, comparison).items()})
    return stream.getvalue()


def compare_json(comparison: Comparison) -> str:
    """Return the records and the settings that differ."""
    names = [side.name for side in comparison.sides]
    document = {
        "schema_version": 1,
        "studies": names,
        "summary": summary(comparison),
        "rows": [_record(row, comparison) for row in comparison.rows],
        "asked": [{"key": key, "values": values} for key, values in comparison.asked],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _record(row: Compared, comparison: Comparison) -> dict[str, Any]:
    """Return a record with the keys `COLUMNS`; `change` is a ratio, or a difference for quality."""
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


def summary(comparison: Comparison) -> str:
    """State how many differences exceed chance."""
    held = [row for row in comparison.rows if not row.why_not]
    if not comparison.rows:
        return "The studies share no row: no strategy ran on the same number of workers."
    if not held:
        return "None of the shared rows can be compared; the tables below give the reasons."
    tested = [row for row in held if row.chance is not None]
    if not tested:
        single = [
            side.name
            for place, side in enumerate(comparison.sides)
            if any(len(side.runs(row.key)) < 2 for row in held if place in (0, row.other))
        ]
        if 0 < len(single) < len(comparison.sides):
            return (
                f"{len(held)} values can be compared, with single runs in {' and '.join(single)}: chance"
                " cannot be ruled out. Sweep two or more seeds there."
            )
        return (
            f"{len(held)} values can be compared, all of single runs, so chance cannot be ruled out. Sweep"
            " two or more seeds on both sides."
        )
    real = sum(row.real for row in tested)
    verb = "is" if real == 1 else "are"
    count = f"Of {len(tested)} tested differences"
    return f"{count}, {real} {verb} more than chance." if real else f"{count}, none is more than chance."


def verdict(row: Compared, comparison: Comparison) -> str:
    """Describe a difference in a few words."""
    if row.why_not:
        return f"not compared: {row.why_not}"
    if row.chance is None:
        return "single runs: unknown"
    if not row.real:
        return "no difference shown"
    better = comparison.sides[0].findings.measures.senses[row.key].better
    more, less = {
        "rate": ("faster", "slower"),
        "training_seconds": ("longer", "shorter"),
        "quality": {"higher": ("better", "worse"), "lower": ("worse", "better")}.get(
            better or "", ("higher", "lower")
        ),
    }[row.quantity]
    unchanged = 0.0 if row.quantity == "quality" else 1.0
    return more if (row.change.value or unchanged) > unchanged else less


def _differences(comparison: Comparison) -> Table:
    """Return a table with a row for each quantity of each shared row, grouped by quantity."""
    names = [side.name for side in comparison.sides]
    footnotes = list(dict.fromkeys(note for row in comparison.rows for note in _footnotes(row)))
    cells = []
    for quantity in QUANTITIES:
        rows = [row for row in comparison.rows if row.quantity == quantity]
        known = [estimate.value for row in rows for estimate in row.values if estimate.value is not None]
        title, length = _title(comparison, quantity, known)
        digits = 3 if quantity == "quality" else decimals([value / length for value in known])
        for row in rows:
            marks = "".join(f" [{footnotes.index(note) + 1}]" for note in _footnotes(row))
            values = [_cell(estimate.scaled(1 / length), digits) for estimate in row.values]
            judged = ("not compared" if row.why_not else verdict(row, comparison)) + marks
            cells.append(
                (
                    title,
                    series.bar(row.key),
                    values[0],
                    names[row.other],
                    values[1],
                    _cell(row.change, 3),
                    judged,
                )
            )
    headings = (
        Heading("Quantity", numeric=False), Heading("Row", numeric=False), Heading(names[0]),
        Heading("Other", numeric=False), Heading("Value"), Heading("Change", "ratio; of quality: difference"),
        Heading("Verdict", numeric=False),
    )  # fmt: skip
    return Table(headings, tuple(cells), footnotes=tuple(footnotes), name="differences")


def _cell(estimate: Estimate, digits: int) -> Cell:
    known = estimate.value is not None
    return Cell(with_interval(estimate, digits), sort=repr(estimate.value)) if known else Cell("")


def _title(comparison: Comparison, quantity: Quantity, known: Sequence[float]) -> tuple[str, float]:
    """Return a quantity with its unit, and the divisor that converts values to this unit."""
    if quantity == "quality":
        return "quality", 1.0
    if quantity == "training_seconds":
        unit, length = time_unit(known)
        return f"training, {unit}", length
    # Epochs, if no row knows its number of samples.
    bases = {comparison.sides[0].findings.measures.bases[row.key] for row in comparison.rows}
    return ("epochs/h", 1 / 3600) if bases == {"epoch"} else ("samples/s", 1.0)


def _footnotes(row: Compared) -> tuple[str, ...]:
    return (f"{row.why_not}.",) if row.why_not else tuple(f"Also differs: {note}." for note in row.notes)


def ratio_figure(comparison: Comparison) -> Figure | None:
    """Return the forest plot of throughputs, else of training times; None if neither is known."""
    import altair as alt

    title, better = "Throughput", "further right is faster"
    rows = [row for row in comparison.rows if row.quantity == "rate" and row.change.value is not None]
    if not rows:
        rows = [row for row in comparison.rows if row.quantity == "training_seconds" and row.change.value]
        title, better = "Training time", "further left is faster"
    if not rows:
        return None
    names = [side.name for side in comparison.sides]
    others = list(dict.fromkeys(names[row.other] for row in rows))
    records = [
        {
            "row": series.bar(row.key), "other": names[row.other], "value": row.change.value,
            "low": row.change.low, "high": row.change.high, "real": row.real,
            "is": "real" if row.real else "not shown", "text": with_interval(row.change, 3),
        }
        for row in rows
    ]  # fmt: skip
    order = list(dict.fromkeys(series.bar(row.key) for row in rows))
    x = alt.X(
        "value:Q",
        title=f"{title} over that of {names[0]}",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(format="~g", grid=True, labelOverlap=True),
    )
    y = alt.Y("row:N", title=None, sort=order, axis=alt.Axis(labelLimit=320))
    count = len(others)
    colours = alt.Scale(domain=others, range=(list(COLOURS) * count)[:count])
    colour = alt.Color("other:N", title=None, scale=colours)
    drawn = alt.Chart(data(records)).encode(x, y, colour)
    if count > 1:
        drawn = drawn.encode(yOffset=alt.YOffset("other:N", sort=others))
    one = alt.Chart(data([{"value": 1.0}])).mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(x="value:Q")
    chart = alt.layer(
        one,
        drawn.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        drawn.mark_point(size=80, strokeWidth=2).encode(
            fill=alt.condition("datum.real", colour, alt.value("transparent")),
            tooltip=tooltip(row="Row", other="Of", text="Ratio", **{"is": "Is"}),
        ),
    ).properties(width=WIDTH, height=max(3, len(order)) * ROW * count)
    return figure(
        "ratios",
        f"{title} against {names[0]}",
        chart,
        f"The dashed line is no difference; {better}. Bars are 95 % intervals of each ratio on its own."
        " Filled points are real differences once they are corrected for the number of comparisons.",
    )
