"""Figures against worker counts: speed-up, efficiency and quality."""

from typing import TYPE_CHECKING, Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import direction_label, metric_label
from scalestudy.report import series
from scalestudy.report.axes import dodge, domain, is_logarithmic, workers
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure
from scalestudy.report.style import DASHES, series_style

if TYPE_CHECKING:
    import altair as alt

GUIDE: dict[str, Any] = {"strokeDash": [5, 4], "strokeWidth": 1.5}
REACH = 1.5
"""How far bars of speed-up may reach beyond its largest and least value: one wide interval hides no curve."""


def speedup(findings: Findings) -> Figure | None:
    """Speed-up against the ideal; None without two worker counts."""
    import altair as alt

    records = series.measured(findings, "speedup")
    counts = sorted({record["workers"] for record in records})
    if len(counts) < 2:
        return None
    ends = (counts[0], counts[-1])
    values = [float(record["value"]) for record in records]
    logarithmic = is_logarithmic(counts)
    cut = _cut(records, min(values) / REACH if logarithmic else 0.0, max(ends[1], *values) * REACH)
    scale = alt.Scale(type="log", base=2) if logarithmic else alt.Scale(domainMin=0)
    y = alt.Y("value:Q", title="Speed-up S", scale=scale, axis=alt.Axis(tickCount=7, format="~g"))
    ideal = [{"workers": count, "value": count} for count in ends]
    line = alt.Chart(data(ideal)).mark_line(**GUIDE).encode(workers(counts), y)
    label = (
        alt.Chart(data([ideal[-1] | {"text": "ideal"}]))
        .mark_text(align="right", dx=-10, dy=-4)
        .encode(workers(counts), y, text="text:N")
    )
    chart = _lines(findings, records, counts, y, name="S", base=[line, label])
    return figure(
        "speedup",
        "Speed-up against workers",
        chart,
        "The dashed line is ideal: n workers, n times the samples per second. A curve that bends away from"
        " it loses time to what does not share out. " + _bars(records) + cut,
    )


def efficiency(findings: Findings) -> Figure | None:
    """Efficiency against what the advice asks for; None without two worker counts."""
    import altair as alt

    records = series.measured(findings, "efficiency")
    counts = sorted({record["workers"] for record in records})
    if len(counts) < 2:
        return None
    cut = _cut(records, 0.0, max(1.5, *(float(record["value"]) for record in records)))
    top = max(1.12, *(float(record.get("high") or record["value"]) for record in records))
    y = alt.Y(
        "value:Q",
        title="Efficiency S/n",
        scale=alt.Scale(domain=[0, top]),
        axis=alt.Axis(tickCount=6),
    )
    levels = [(1.0, "ideal"), (findings.target, f"worth its cost: {findings.target:g}")]
    marks = [{"value": value, "text": text, "workers": domain(counts)[0]} for value, text in levels]
    rule = alt.Chart(data(marks)).mark_rule(**GUIDE).encode(y)
    label = (
        alt.Chart(data(marks)).mark_text(align="left", dx=4, dy=-8).encode(workers(counts), y, text="text:N")
    )
    return figure(
        "efficiency",
        "Efficiency against workers",
        _lines(findings, records, counts, y, name="Efficiency", base=[rule, label]),
        "The share of each worker that pays. Points below the lower dashed line cost more worker-hours than"
        " the advice above accepts. " + _bars(records) + cut,
    )


def quality(findings: Findings) -> Figure | None:
    """Quality with its intervals; None without results."""
    import altair as alt

    records = series.measured(findings, "quality")
    if not records:
        return None
    counts = sorted({record["workers"] for record in records})
    metric = metric_label(findings.rows[0].metric)
    split = findings.runs[0].result.quality_split
    # A metric in [0, 1] whose values are not is one in per cent.
    bounded = all(row.sense.bounded for row in findings.rows)
    cut = _cut(records, 0.0, 1.0) if bounded and max(float(r["value"]) for r in records) <= 1 else ""
    better = findings.rows[0].sense.better
    title = ", ".join(filter(None, (f"{metric} ({split} set)", direction_label(better))))
    # One value alone spans no scale: its axis would say 0 beside it.
    alone = len({record[end] for record in records for end in ("value", "low", "high") if end in record}) == 1
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=alone), axis=alt.Axis(tickCount=6))
    costs = {"higher": "falling", "lower": "rising", None: "a change to the bad"}[better]
    return figure(
        "quality",
        "Quality against workers",
        _lines(findings, records, counts, y, name=metric),
        f"{metric} of the saved model; level is good, {costs} means that the larger global batch costs"
        " quality. " + _bars(records) + cut,
    )


def _cut(records: series.Records, least: float, most: float) -> str:
    """Cut bars at `least` and `most`; what to say of it in the caption."""
    before = [(record.get("low"), record.get("high")) for record in records]
    for record in records:
        if "low" in record:
            record["low"], record["high"] = max(least, record["low"]), min(most, record["high"])
    changed = before != [(record.get("low"), record.get("high")) for record in records]
    return f" They are cut at {least:.3g} and {most:.3g}." if changed else ""


def _lines(
    findings: Findings,
    records: series.Records,
    counts: list[int],
    y: "alt.Y",
    *,
    name: str,
    base: "list[Any] | None" = None,
) -> Any:
    """Lines, points and error bars, one colour and shape a series."""
    import altair as alt

    labels = series.labels(findings)
    shown = [label for label in labels.names if any(record["series"] == label for record in records)]
    colours, shapes = series_style(shown, shown, labels.by_strategy)
    title = "Strategy" if labels.by_strategy else ", ".join(findings.rows[0].key.swept)
    colour = alt.Color(
        "series:N",
        title=title,
        scale=alt.Scale(domain=shown, range=colours),
        legend=alt.Legend(symbolOpacity=1),
    )
    shape = alt.Shape("series:N", title=title, scale=alt.Scale(domain=shown, range=shapes))
    picked = alt.selection_point(name="picked", fields=["series"], bind="legend")
    faded = alt.when(picked).then(alt.value(1.0)).otherwise(alt.value(0.12))
    tooltip = [
        alt.Tooltip("strategy:N", title="Strategy"),
        *([alt.Tooltip("variant:N", title="Swept")] if len(labels.variants) > 1 else []),
        alt.Tooltip("workers:Q", title="Workers"),
        alt.Tooltip("text:N", title=name),
        alt.Tooltip("runs:Q", title="Runs"),
    ]
    has_bars = any("low" in record for record in records)
    for record in records:
        shift, factor = dodge(counts, shown.index(record["series"]), len(shown)) if has_bars else (0.0, 1.0)
        record["place"] = round(record["workers"] * factor + shift, 4)
    x = workers(counts, "place")
    drawn = alt.Chart(data(records)).encode(x, y, colour, opacity=faded)
    line = drawn.mark_line(strokeWidth=2.5)
    if labels.both:
        dashes = [list(DASHES[index % len(DASHES)]) for index in range(len(labels.variants))]
        scale = alt.Scale(domain=labels.variants, range=dashes)
        line = line.encode(strokeDash=alt.StrokeDash("variant:N", title=None, scale=scale))
    bars = [
        drawn.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        drawn.mark_tick(thickness=2, size=9, orient="horizontal").encode(y="low:Q"),
        drawn.mark_tick(thickness=2, size=9, orient="horizontal").encode(y="high:Q"),
    ]
    points = drawn.mark_point(filled=True, size=90).encode(shape=shape, tooltip=tooltip)
    layers = [*(base or []), line, *(bars if has_bars else []), points.add_params(picked)]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _bars(records: series.Records) -> str:
    if any("low" in record for record in records):
        return "Bars are 95 % intervals over seeds; they are set slightly apart so that none hides another."
    return "One run each, so there are no intervals."
