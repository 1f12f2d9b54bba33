"""Figures against worker counts: speed-up, efficiency and cost, quality; each with others in its place."""

from collections.abc import Callable
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.recorded import metric_of, whole_metrics
from scalestudy.analysis.runs import direction_label, metric_label
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.report import series
from scalestudy.report.axes import domain, is_logarithmic
from scalestudy.report.columns import BASIS_WORDS, Column, basis_of, columns_of
from scalestudy.report.figure import Figure, figure
from scalestudy.report.lines import LEAST_COUNTS, Guide, Vertical, around, left_out, lines
from scalestudy.study.metrics import known

REACH = 1.5
"""How far bars of speed-up may reach beyond its largest and least value: one wide interval hides no curve."""


def speedup(findings: Findings) -> list[Figure]:
    """Speed-up against the ideal, of throughput and of training time; none without two worker counts.

    Numbers taken elsewhere may have times alone: then the first is of these.
    """
    basis = basis_of(findings.rows)
    ways: list[tuple[str, str, Callable[[Row], Estimate]]] = [
        ("speedup", basis, lambda row: row.speed.steady)
    ]
    if basis != BASIS_WORDS["training"]:
        ways.append(("speedup-training", BASIS_WORDS["training"], lambda row: row.speed.training))
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
    }.get(basis, "as fast")
    caption = (
        f"The dashed line is ideal: n workers, n times {ideal}."
        f" {_bends(counts)}{_relative(findings)}{_bars(records)}{cut}{left_out(findings)}"
    )
    return _figure(findings, name, "Speed-up", chart, caption, "speedup", f"of {basis}")


def _relative(findings: Findings) -> str:
    """How speed-ups are drawn that are against several workers; nothing where none is."""
    if all(row.speed.against == 1 for row in findings.rows):
        return ""
    return "Relative speed-ups, against n0 workers, are drawn n0 times as high: on the ideal at n0. "


def efficiency(findings: Findings) -> list[Figure]:
    """Efficiency against what the advice asks for, and what else was measured; none without two counts."""
    records = series.measured(findings, lambda row: row.efficiency)
    counts = sorted({record["workers"] for record in records})
    others = [each for column in columns_of(findings.rows) if (each := _column(findings, column))]
    if len(counts) < 2:
        return others
    cut = _cut(records, 0.0, max(1.5, *(float(record["value"]) for record in records)))
    _, most = around([0.0, 1.06, *series.reach(records)], zero=True)
    ends = domain(counts)
    guides = [
        Guide(((ends[0], level), (ends[1], level)), text)
        for level, text in ((1.0, "ideal"), (findings.target, f"asked: {findings.target:g}"))
    ]
    chart = lines(findings, records, Vertical("Efficiency S/n", 0.0, most), "Efficiency", guides)
    caption = (
        "The share of each worker that pays. Points below the lower dashed line keep less than the efficiency"
        f" of {findings.target:g} that was asked for. {_bars(records)}{cut}{left_out(findings)}"
    )
    first = _figure(findings, "efficiency", "Efficiency", chart, caption, "efficiency", "Efficiency")
    return [first, *others]


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
