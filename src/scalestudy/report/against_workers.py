"""Figures against worker counts: speed-up, efficiency and cost, quality; each with others in its place."""

from collections.abc import Callable, Sequence
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.recorded import metric_of, whole_metrics
from scalestudy.analysis.runs import direction_label, metric_label
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.table import Row
from scalestudy.report import series
from scalestudy.report.axes import domain, is_logarithmic
from scalestudy.report.columns import BASIS_WORDS, Column, basis_of, columns_of
from scalestudy.report.figure import Figure, figure
from scalestudy.report.format import decimals, number
from scalestudy.report.lines import LEAST_COUNTS, Guide, Vertical, around, left_out, lines
from scalestudy.study.metrics import known
from scalestudy.util import units

WALL = "from start to result"
"""What a speed-up of wall clock is of, in words."""
MOST_BASELINES = 6
"""Rows whose absolute performance a caption states."""
REACH = 1.5
"""How far bars of speed-up may reach beyond its largest and least value: one wide interval hides no curve."""


def speedup(findings: Findings) -> list[Figure]:
    """Speed-up against the ideal, of throughput, training time and wall clock; none without two counts.

    Numbers taken elsewhere may have times alone: then the first is of these.
    """
    basis = basis_of(findings.rows)
    ways: list[tuple[str, str, Callable[[Row], Estimate]]] = [
        ("speedup", basis, lambda row: row.speed.steady)
    ]
    if basis != BASIS_WORDS["training"]:
        ways.append(("speedup-training", BASIS_WORDS["training"], lambda row: row.speed.training))
    ways.append(("speedup-wall", WALL, lambda row: row.speed.wall))
    found = [_speedup(findings, *way) for way in ways]
    return [each for each in found if each]


def _speedup(findings: Findings, name: str, basis: str, of: Callable[[Row], Estimate]) -> Figure | None:
    records = series.measured(findings, lambda row: of(row).scaled(float(row.speed.against)))
    counts = sorted({record["workers"] for record in records})
    if len(counts) < 2:
        return None
    low, high = float(counts[0]), float(counts[-1])
    values = [float(record["value"]) for record in records]
    logarithmic = is_logarithmic(counts)
    cut = _cut(records, min(values) / REACH if logarithmic else 0.0, max(high, *values) * REACH)
    ends = [high, low, *series.reach(records)]
    least, most = (min(ends) / 1.15, max(ends) * 1.15) if logarithmic else around([0.0, *ends], zero=True)
    chart = lines(
        findings,
        records,
        Vertical("Speed-up S", least, most, logarithmic),
        "S",
        [Guide(((low, low), (high, high)), "ideal")],
    )
    ideal = {
        BASIS_WORDS["throughput"]: "the samples per second",
        BASIS_WORDS["epoch"]: "shorter epochs",
        BASIS_WORDS["training"]: "shorter training",
        WALL: "shorter from start to result",
    }.get(basis, "as fast")
    caption = (
        f"The dashed line is ideal: n workers, n times {ideal}."
        f" {_absolute(findings, basis)}"
        f"{_bends(counts)}{_relative(findings)}{_bars(records)}{cut}{left_out(findings)}"
    )
    choice = basis if basis == WALL else f"of {basis}"
    return _figure(findings, name, "Speed-up", chart, caption, "speedup", choice)


def _absolute(findings: Findings, basis: str) -> str:
    """What speed-ups are multiples of, as absolute numbers (Hoefler and Belli, SC15, rule 1)."""
    keys = dict.fromkeys(row.speed.baseline for row in findings.rows)
    rows = [row for row in findings.rows if row.key in keys]
    told: dict[int, list[str]] = {}
    for row in rows[:MOST_BASELINES]:
        if value := _performance(row, basis):
            name = row.strategy + (f", {row.key.details}" if row.key.details else "")
            told.setdefault(row.workers, []).append(f"{value} ({name})")
    sentences = [
        f"{workers} worker{'s' * (workers > 1)}: {'; '.join(values)}." for workers, values in told.items()
    ]
    left = [f"The table has {len(rows) - MOST_BASELINES} more."] * (len(rows) > MOST_BASELINES)
    return "".join(f"{sentence} " for sentence in [*sentences, *left])


def _performance(row: Row, basis: str) -> str:
    """Absolute performance of a row in what a speed-up is the ratio of; "" where it is not known."""
    seconds = {WALL: row.wall_seconds, BASIS_WORDS["training"]: row.training_seconds}.get(basis)
    if seconds is not None:
        return "" if seconds.value is None else units.duration(seconds.value)
    rate = row.throughput.value
    return "" if rate is None else f"{number(rate, decimals([rate]))} samples/s"


def _relative(findings: Findings) -> str:
    """How speed-ups are drawn that are against several workers; nothing where none is."""
    if all(row.speed.against == 1 for row in findings.rows):
        return ""
    return "Relative speed-ups, against n0 workers, are drawn n0 times as high: on the ideal at n0. "


def efficiency(findings: Findings) -> list[Figure]:
    """Scaling efficiency, cost efficiency against what is asked for, and what else was measured."""
    absolute = _absolute(findings, basis_of(findings.rows))
    asked = f"asked: {findings.target:g}"
    found = [
        _efficiency(
            findings,
            "efficiency",
            "Scaling efficiency",
            lambda row: row.efficiency,
            ((1.0, "ideal"),),
            f"The share of each worker that pays, against the strategy's own one worker. {absolute}",
        ),
        _efficiency(
            findings,
            "cost-efficiency",
            "Cost efficiency",
            lambda row: row.price.efficiency if row.price else NOTHING,
            ((1.0, "reference"), (findings.target, asked)),
            "Cost of the cheapest one-worker row of as good a model over a row's. What lies below the lower"
            f" dashed line keeps less than the {findings.target:g} that was asked for. ",
        ),
    ]
    return [
        each for each in (*found, *(_column(findings, each) for each in columns_of(findings.rows))) if each
    ]


def _efficiency(
    findings: Findings,
    name: str,
    title: str,
    of: Callable[[Row], Estimate],
    levels: Sequence[tuple[float, str]],
    words: str,
) -> Figure | None:
    """An efficiency with lines to read it by; None without two counts."""
    records = series.measured(findings, of)
    counts = sorted({record["workers"] for record in records})
    if len(counts) < 2:
        return None
    cut = _cut(records, 0.0, max(1.5, *(float(record["value"]) for record in records)))
    _, most = around([0.0, 1.06, *series.reach(records)], zero=True)
    ends = domain(counts)
    guides = [Guide(((ends[0], level), (ends[1], level)), text) for level, text in levels]
    chart = lines(findings, records, Vertical(title, 0.0, most), title, guides)
    caption = f"{words}{_bars(records)}{cut}{left_out(findings)}"
    return _figure(findings, name, title, chart, caption, "efficiency", title)


def _column(findings: Findings, column: Column) -> Figure | None:
    records = series.measured(findings, column.of)
    if len({record["workers"] for record in records}) < 2:
        return None
    title = f"{column.title} ({column.unit})" if column.unit else column.title
    low, high = around(series.reach(records), zero=True)
    chart = lines(findings, records, Vertical(title, low, high), column.title)
    caption = f"{column.title} of one run. {_bars(records)}{left_out(findings)}"
    name = column.name.replace("_", "-")
    return _figure(findings, name, column.title, chart, caption, "efficiency", column.title)


def quality(findings: Findings) -> list[Figure]:
    """Quality with its intervals, and the other metrics of the runs; none where there is one row."""
    if len(findings.rows) < 2:
        return []
    asked = findings.rows[0].metric
    found = [_metric(findings, asked, "quality", lambda row: row.quality)]
    names = [name for name in whole_metrics(findings.runs) if name != asked]
    for name in names:
        found.append(_metric(findings, name, f"metric-{name}", _of_metric(findings, name)))
    return [each for each in found if each]


def _of_metric(findings: Findings, name: str) -> Callable[[Row], Estimate]:
    return lambda row: metric_of(findings.measures.groups[row.key], name)


def _metric(findings: Findings, metric: str, name: str, of: Callable[[Row], Estimate]) -> Figure | None:
    records = series.measured(findings, of)
    if not records:
        return None
    counts = sorted({record["workers"] for record in records})
    label = metric_label(metric)
    stated = all(run.foreign for run in findings.runs)
    split = "" if stated else f" ({findings.runs[0].result.quality_split} set)"
    own = name == "quality"
    better = findings.rows[0].sense.better if own else known(metric).better
    # A metric in [0, 1] whose values are not is one in per cent.
    bounded = all(row.sense.bounded for row in findings.rows) if own else known(metric).bounded
    cut = _cut(records, 0.0, 1.0) if bounded and max(float(r["value"]) for r in records) <= 1 else ""
    title = ", ".join(filter(None, (f"{label}{split}", direction_label(better))))
    # Less than the margin of the verdicts is not seen as much.
    values = series.reach(records)
    sense = findings.rows[0].sense if own else known(metric)
    held = [
        *values,
        *(
            record["value"] + side * accepted_loss(record["value"], sense, findings.margin)
            for record in records
            for side in (-1, 1)
        ),
    ]
    # One value alone spans no scale: its axis says 0 beside it.
    y = Vertical(title, *around(held, zero=len(set(values)) == 1))
    costs = {"higher": "falling", "lower": "rising", None: "a change to the bad"}[better]
    grows = len({row.global_batch for row in findings.rows}) > 1
    what = "the larger global batch costs" if grows else "more workers cost"
    level = f" Level is good, {costs} means that {what} quality."
    of_what = "as its files state it" if stated else "of the saved model"
    caption = f"{label} {of_what}.{level if len(counts) > 1 else ''}"
    caption += f" {_bars(records)}{cut}{left_out(findings)}"
    shown = "Quality" if own else f"{label[0].upper()}{label[1:]}"
    return _figure(findings, name, shown, lines(findings, records, y, label), caption, "quality", label)


def _figure(
    findings: Findings, name: str, title: str, chart: Any, caption: str, group: str, choice: str
) -> Figure:
    wide = bool(series.panels(findings))
    return figure(name, f"{title} against workers", chart, caption, wide, group=group, choice=choice)


def _cut(records: series.Records, least: float, most: float) -> str:
    """Cut bars at `least` and `most`; what to say of it in the caption."""
    before = [(record.get("low"), record.get("high")) for record in records]
    for record in records:
        if "low" in record:
            record["low"], record["high"] = max(least, record["low"]), min(most, record["high"])
    changed = before != [(record.get("low"), record.get("high")) for record in records]
    return f" They are cut at {least:.3g} and {most:.3g}." if changed else ""


def _bends(counts: list[int]) -> str:
    if len(counts) < LEAST_COUNTS:
        return "Two counts show one gain, not a curve: sweep more to see where it ends. "
    return "A curve that bends away from it loses time to what does not share out. "


def _bars(records: series.Records) -> str:
    if any("low" in record for record in records):
        return "Bars are 95 % intervals over seeds; they are set slightly apart so that none hides another."
    return "One run each, so there are no intervals."
