"""A comparison of studies as a document."""

from collections.abc import Sequence

from scalestudy.analysis.runs import Key, describe, metric_label
from scalestudy.analysis.statistics import Estimate
from scalestudy.features.compare.comparison import Comparison
from scalestudy.features.compare.figure import ratio_figure
from scalestudy.features.compare.rows import QUANTITIES, Compared, Quantity
from scalestudy.report.document import (
    Block,
    Document,
    Drawing,
    Folded,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
)
from scalestudy.report.environment import environments
from scalestudy.report.format import decimals, time_unit, with_interval
from scalestudy.util import units

MOST_NAMED = 8
"""Real differences that are named in sentences; the others are in the tables."""
METHOD = (
    "Ratios are of geometric means over runs, unpaired, with Welch's 95 % interval on logarithms; each side's"
    " spreads are pooled on its own. Differences of quality are paired by seed where both sides asked for the"
    " same task, data and training, so that one seed means one split and one start. A difference is real"
    " where its P value, corrected by Holm's method (1979) for all comparisons of this page, is below 0.05;"
    " intervals are not corrected. Cost is workers times hours of training."
)


def compare_document(comparison: Comparison) -> Document:
    """What differs, what of it is real, and whether rankings agree."""
    names = [side.name for side in comparison.sides]
    blocks: list[Block] = [Paragraph(summary(comparison))]
    told = (*comparison.sentences, *_named(comparison))
    blocks += [Items(told)] if told else []
    drawn = ratio_figure(comparison)
    blocks += [Drawing(drawn)] if drawn else []
    sections = [
        *(_quantity(comparison, quantity) for quantity in QUANTITIES),
        *(make(comparison) for make in (_ranked, _asked, _environment, _alone)),
    ]
    blocks += [section for section in sections if section]
    blocks.append(Section("How this was compared", (Items((METHOD, *_unpaired(comparison))),)))
    return Document(f"{names[0]} against {' and '.join(names[1:])}", tuple(blocks), "Comparison of studies")


def summary(comparison: Comparison) -> str:
    """How many of the differences are real."""
    held = [row for row in comparison.rows if not row.why_not]
    if not comparison.rows:
        return "The studies share no row: no strategy was run on the same number of workers."
    if not held:
        return "None of the shared rows can be compared: the tables below say why."
    tested = [row for row in held if row.chance is not None]
    real = sum(row.real for row in tested)
    if not tested:
        return (
            f"{len(held)} values can be compared, all of single runs: nothing can be said of chance. Sweep"
            " two seeds or more on both sides."
        )
    if not real:
        return f"Of {len(tested)} differences that were tested none is more than chance."
    verb = "is" if real == 1 else "are"
    return f"Of {len(tested)} differences that were tested {real} {verb} real: more than chance."


def verdict(row: Compared, comparison: Comparison) -> str:
    """What a difference is, in a few words."""
    if row.why_not:
        return f"not compared: {row.why_not}"
    if row.chance is None:
        return "single runs: not told"
    words = _more_less(row, comparison)
    if not row.real:
        return "no difference shown"
    none = 0.0 if row.quantity == "quality" else 1.0
    return words[0] if (row.change.value or none) > none else words[1]


def _more_less(row: Compared, comparison: Comparison) -> tuple[str, str]:
    if row.quantity == "rate":
        return "faster", "slower"
    if row.quantity == "training_seconds":
        return "longer", "shorter"
    better = comparison.sides[0].findings.measures.senses[row.key].better
    return {"higher": ("better", "worse"), "lower": ("worse", "better"), None: ("higher", "lower")}[better]


def _named(comparison: Comparison) -> list[str]:
    """Real differences of speed and quality in sentences, the largest first."""
    names = [side.name for side in comparison.sides]
    rated = {(row.key, row.other) for row in comparison.rows if row.quantity == "rate" and not row.why_not}
    real = [
        row
        for row in comparison.rows
        if row.real and (row.quantity != "training_seconds" or (row.key, row.other) not in rated)
    ]
    found = []
    for row in sorted(real, key=lambda row: row.corrected or 0.0)[:MOST_NAMED]:
        words = verdict(row, comparison)
        if row.quantity == "rate":
            found.append(
                f"{names[row.other]} is {words} with {row.key.label}: its throughput is"
                f" {_ends(row.change, 2)} times that of {names[0]}."
            )
        elif row.quantity == "training_seconds":
            found.append(
                f"Training takes {words} on {names[row.other]} with {row.key.label}:"
                f" {_ends(row.change, 2)} times as long as on {names[0]}."
            )
        else:
            metric = metric_label(comparison.sides[0].runs(row.key)[0].result.metric)
            change = _ends(row.change, 3)
            found.append(f"{metric} is {words} on {names[row.other]} with {row.key.label}: by {change}.")
    return found


def _ends(estimate: Estimate, digits: int) -> str:
    value = f"{estimate.value:.{digits}f}".replace("-", "−")
    if estimate.low is None or estimate.high is None:
        return value
    ends = f"{estimate.low:.{digits}f} to {estimate.high:.{digits}f}".replace("-", "−")
    return f"{value} (95 % interval {ends})"


def _quantity(comparison: Comparison, quantity: Quantity) -> Section | None:
    rows = [row for row in comparison.rows if row.quantity == quantity]
    if not rows:
        return None
    unit, length = _unit_of_rate(rows, comparison) if quantity == "rate" else ("", 1.0)
    known = [each.value for row in rows for each in row.values if each.value is not None]
    if quantity == "training_seconds":
        unit, length = time_unit(known)
    digits = 3 if quantity == "quality" else decimals([value / length for value in known])
    title, heading = {
        "rate": ("Throughput", Heading("Ratio", "other / first", "ratio")),
        "training_seconds": ("Training time and cost", Heading("Ratio", "other / first", "ratio")),
        "quality": ("Quality", Heading("Difference", "other − first", "difference")),
    }[quantity]
    footnotes = list(dict.fromkeys(each for row in rows for each in _footnotes(row)))
    verdicts = [_marked(row, comparison, footnotes) for row in rows]
    names = [side.name for side in comparison.sides]
    several = len(names) > 2
    table = Table(
        (
            Heading("Strategy", numeric=False),
            Heading("Workers", brief="n"),
            Heading(names[0], unit),
            *([Heading("Other", numeric=False)] if several else []),
            Heading("Value" if several else names[1], unit),
            heading,
            *(
                [Heading("Worker time", f"{names[0]}, other", "cost")]
                if quantity == "training_seconds"
                else []
            ),
            Heading("Verdict", numeric=False),
        ),
        tuple(
            _line(row, comparison, digits, length, several, told)
            for row, told in zip(rows, verdicts, strict=True)
        ),
        footnotes=tuple(footnotes),
        name=quantity,
    )
    return Section(title, (table,))


def _unit_of_rate(rows: Sequence[Compared], comparison: Comparison) -> tuple[str, float]:
    """Unit of rates, and what a rate in it is divided by: epochs per hour where no row knows its samples."""
    bases = {comparison.sides[0].findings.measures.bases[row.key] for row in rows}
    return ("epochs/h", 1 / 3600) if bases == {"epoch"} else ("samples/s", 1.0)


def _line(
    row: Compared, comparison: Comparison, digits: int, length: float, several: bool, told: str
) -> tuple[str, ...]:
    first, second = (
        with_interval(each.scaled(1 / length), digits) if each.value is not None else ""
        for each in row.values
    )
    change = row.change
    hours = [row.key.workers * each.value / 3600 if each.value else None for each in row.values]
    cost = " and ".join("–" if each is None else units.cost(each) for each in hours)
    return (
        name_of(row.key),
        str(row.key.workers),
        first,
        *([comparison.sides[row.other].name] if several else []),
        second,
        with_interval(change, 3) if change.value is not None else "",
        *([cost] if row.quantity == "training_seconds" else []),
        told,
    )


def _footnotes(row: Compared) -> tuple[str, ...]:
    return (f"{row.why_not}.",) if row.why_not else tuple(f"Also differs: {note}." for note in row.notes)


def _marked(row: Compared, comparison: Comparison, footnotes: Sequence[str]) -> str:
    """The verdict, and the numbers of its footnotes."""
    marks = "".join(f" [{footnotes.index(each) + 1}]" for each in _footnotes(row))
    return ("not compared" if row.why_not else verdict(row, comparison)) + marks


def name_of(key: Key) -> str:
    """Strategy, and the other swept values where there are any."""
    return f"{key.strategy} ({key.details})" if key.swept else key.strategy


def _ranked(comparison: Comparison) -> Section | None:
    places = sorted({place for found in comparison.rankings for place in found})
    if not places:
        return None
    names = [side.name for side in comparison.sides]
    rows = []
    for place in places:
        cells = [_tiers(found[place].tiers) if place in found else "" for found in comparison.rankings]
        swept = describe(Key("", place[1], place[0]).swept)
        rows.append((f"{place[1]}" + (f" ({swept})" if swept else ""), *cells))
    headings = (Heading("Workers", numeric=False), *(Heading(name, numeric=False) for name in names))
    note = "Strategies that the runs do not tell apart stand in brackets, the faster mean first."
    return Section(
        "Strategies ranked by speed", (Table(headings, tuple(rows), name="ranking"), Paragraph(note))
    )


def _tiers(tiers: Sequence[tuple[str, ...]]) -> str:
    return " > ".join(tier[0] if len(tier) == 1 else f"({', '.join(tier)})" for tier in tiers)


def _asked(comparison: Comparison) -> Section | None:
    if not comparison.asked:
        return None
    return Section("What was asked for differently", (_side_by_side(comparison, "Key", comparison.asked),))


def _environment(comparison: Comparison) -> Section | None:
    found = [dict(environments(side.findings.runs)) for side in comparison.sides]
    names = list(dict.fromkeys(name for facts in found for name in facts))
    unlike = [
        (name, tuple(facts.get(name, "") for facts in found))
        for name in names
        if len({facts.get(name, "") for facts in found}) > 1
    ]
    if not unlike:
        return None
    return Section(
        "Where it ran",
        (Folded("Machines and versions that differ", (_side_by_side(comparison, "", unlike),)),),
    )


def _side_by_side(comparison: Comparison, what: str, rows: Sequence[tuple[str, tuple[str, ...]]]) -> Table:
    headings = (
        Heading(what, numeric=False),
        *(Heading(side.name, numeric=False) for side in comparison.sides),
    )
    return Table(headings, tuple((name, *values) for name, values in rows))


def _alone(comparison: Comparison) -> Section | None:
    items = tuple(
        f"Only in {side.name}: {', '.join(_series(keys))}."
        for side, keys in zip(comparison.sides, comparison.alone, strict=True)
        if keys
    )
    return Section("Not compared", (Items(items),)) if items else None


def _series(keys: Sequence[Key]) -> list[str]:
    """`horovod on 1, 2, 4 workers`, each strategy and variant once."""
    counts: dict[str, list[str]] = {}
    for key in keys:
        counts.setdefault(name_of(key), []).append(str(key.workers))
    return [f"{name} on {', '.join(found)} workers" for name, found in counts.items()]


def _unpaired(comparison: Comparison) -> list[str]:
    return [
        f"Qualities of {side.name} are not paired by seed: {why}."
        for side, why in zip(comparison.sides[1:], comparison.unpaired, strict=True)
        if why
    ]
