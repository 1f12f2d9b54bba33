"""The figure of the decision: time to train against cost, one point a row, with the Pareto front."""

from scalestudy.analysis.findings import Findings
from scalestudy.report import series
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure
from scalestudy.report.format import time_unit
from scalestudy.report.style import series_style

NAME = "time-and-cost"
FADED = 0.35
"""Opacity of rows whose quality is worse, or seems so."""


ROOM = 0.13, 0.1
"""Shares of the figure's width and height that a label takes, on a phone."""


def _name(records: series.Records) -> None:
    """Name points by their workers: the advised one and the front first, none where another's name stands."""
    ends = {axis: [record[axis] for record in records] for axis in ("cost", "time")}
    width, height = (max(values) - min(values) or 1.0 for values in ends.values())
    named: series.Records = []
    for record in sorted(records, key=lambda record: (not record["advised"], not record["front"])):
        near = any(
            abs(record["cost"] - other["cost"]) < ROOM[0] * width
            and abs(record["time"] - other["time"]) < ROOM[1] * height
            for other in named
        )
        record["label"] = "" if near else record["workers"]
        named += [] if near else [record]


def time_and_cost(findings: Findings) -> list[Figure]:
    """Time against cost of every row that was timed; none with fewer than two."""
    import altair as alt

    priced = [row for row in findings.rows if row.price and row.price.cost.value is not None]
    if len(priced) < 2:
        return []
    unit, length = time_unit([row.price.seconds.value or 0.0 for row in priced if row.price])
    labels = series.labels(findings)
    choice, verdicts = findings.advice.choice, findings.advice.decision.verdicts or {}
    records = []
    for row in priced:
        assert row.price is not None
        assert row.price.seconds.value is not None
        assert row.price.cost.value is not None
        sound = not verdicts[row.key].seems_worse
        records.append(
            labels.fields(row.key)
            | {
                "workers": str(row.workers),
                "time": series.rounded(row.price.seconds.value / length),
                "cost": series.rounded(row.price.cost.value),
                "efficiency": series.rounded(row.price.efficiency.value or 0.0),
                "front": row.price.on_front,
                "opacity": 1.0 if sound else FADED,
                "advised": choice is not None and row.key == choice.key,
                "quality": verdicts[row.key].sentence,
            }
        )
    _name(records)
    bill = findings.advice.decision.bill
    shown = [name for name in labels.names if any(record["series"] == name for record in records)]
    colours, shapes = series_style(shown, shown, labels.by_strategy)
    title = "Strategy" if labels.by_strategy else ", ".join(findings.rows[0].key.swept)
    legend = alt.Legend(symbolOpacity=1) if len(shown) > 1 else None
    base = alt.Chart(data(records)).encode(
        alt.X(
            "cost:Q",
            title=f"Cost of one training ({bill}-hours)",
            scale=alt.Scale(zero=False, padding=24),
            axis=alt.Axis(tickCount=8),
        ),
        alt.Y("time:Q", title=f"Time to train ({unit})", scale=alt.Scale(zero=False, padding=24)),
    )
    colour = alt.Color("series:N", title=title, scale=alt.Scale(domain=shown, range=colours), legend=legend)
    shape = alt.Shape("series:N", title=title, scale=alt.Scale(domain=shown, range=shapes), legend=legend)
    tooltip = [
        alt.Tooltip("strategy:N", title="Strategy"),
        *([alt.Tooltip("variant:N", title="Swept")] if len(labels.variants) > 1 else []),
        alt.Tooltip("workers:N", title="Workers"),
        alt.Tooltip("time:Q", title=f"Time ({unit})"),
        alt.Tooltip("cost:Q", title=f"{bill.capitalize()}-hours"),
        alt.Tooltip("efficiency:Q", title="Cost efficiency"),
        alt.Tooltip("quality:N", title="Quality"),
    ]
    front = base.transform_filter("datum.front").mark_line(
        strokeDash=[5, 4], strokeWidth=1.5, color="#6E7781"
    )
    points = base.mark_point(filled=True, size=110).encode(
        colour, shape, alt.Opacity("opacity:Q", scale=None), tooltip=tooltip
    )
    ring = base.transform_filter("datum.advised").mark_point(size=420, strokeWidth=2.5).encode(color=colour)
    names = (
        base.transform_filter("datum.label")
        .mark_text(align="left", baseline="bottom", dx=11, dy=-8)
        .encode(text="label:N")
    )
    # By its order along the front, and not by that of the rows.
    front = front.encode(order="cost:Q")
    chart = alt.layer(front, ring, points, names).properties(width=WIDTH, height=HEIGHT)
    caption = (
        "One point a row, named by its workers where there is room; the dashed line is the Pareto front:"
        " nothing on it is beaten in both time and cost by a row of sound quality."
        + (" The ring is what is advised." if choice is not None else "")
        + (" Faded rows are or seem worse." if any(verdicts[row.key].seems_worse for row in priced) else "")
    )
    return [figure(NAME, "Time to train against cost", chart, caption)]
