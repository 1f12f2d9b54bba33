"""Figures of time: time to train against cost, with the Pareto front, and where the time goes."""

from collections.abc import Iterable
from math import log
from typing import TYPE_CHECKING

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.statistics import Estimate
from scalestudy.report.figure import (
    COLOURS,
    HEIGHT,
    WIDTH,
    Figure,
    colour_and_shape,
    data,
    figure,
    tooltip,
)
from scalestudy.report.figure_data import (
    Records,
    bar,
    ends,
    is_logarithmic,
    labels,
    log_ticks,
    rounded,
)
from scalestudy.report.number_format import cost_unit, time_unit

if TYPE_CHECKING:
    import altair as alt

NAME = "time-and-cost"
FADED = 0.35
"""Opacity of rows whose quality is or seems worse."""
MOST_NAMED = 16
"""Number of points up to which points off the front are labelled, too."""
ROOM = 0.13, 0.1
"""Shares of the figure's width and height that a label takes on a phone."""
BEYOND = 1.5
"""Factor by which intervals may exceed the values on a logarithmic axis."""
MOST_ROWS = 30
MOST_PHASES = 7
"""Largest number of phases with their own colour."""


def time_and_cost(findings: Findings) -> list[Figure]:
    """Time against cost of every timed row; none with fewer than two."""
    import altair as alt

    records, unit, billed = _records(findings)
    if len(records) < 2:
        return []
    named, bill = labels(findings), findings.advice.decision.bill
    title = "Strategy" if named.by_strategy else ", ".join(findings.rows[0].key.swept)
    colour, shape = colour_and_shape(named.shown(records), named.by_strategy, title)
    cut = _cut(records)
    scales = {field: _scale(records, field) for field in ("cost", "time")}

    def cost(field: str) -> alt.X:
        scale, axis = scales["cost"]
        return alt.X(
            f"{field}:Q",
            title=f"Cost of one training ({bill}-{billed})",
            scale=scale,
            axis=axis,
        )

    def time(field: str) -> alt.Y:
        scale, axis = scales["time"]
        return alt.Y(
            f"{field}:Q", title=f"Time to train ({unit})", scale=scale, axis=axis
        )

    base = alt.Chart(data(records)).encode(cost("cost"), time("time"))
    swept = {"variant": "Swept"} if len(named.variants) > 1 else {}
    efficiency = (
        {"efficiency": "Cost efficiency|~g"}
        if findings.advice.decision.reference
        else {}
    )
    tips = tooltip(
        strategy="Strategy",
        **swept,
        workers="Workers",
        time=f"Time ({unit})|~g",
        cost=f"{bill.capitalize()}-{billed}|~g",
        **efficiency,
        quality="Quality",
    )
    front = base.transform_filter("datum.front").mark_line(
        strokeDash=[5, 4], strokeWidth=1.5, color="#6E7781"
    )
    ring = (
        base.transform_filter("datum.advised")
        .mark_point(size=420, strokeWidth=2.5)
        .encode(color=colour)
    )
    points = base.mark_point(filled=True, size=110).encode(
        colour, shape, alt.Opacity("opacity:Q", scale=None), tooltip=tips
    )
    bars = [
        base.transform_filter(f"isValid(datum.{field}_low)")
        .mark_rule(strokeWidth=1.5, opacity=FADED)
        .encode(colour, axis(f"{field}_low"), **{end: f"{field}_high:Q"})
        for field, axis, end in (("cost", cost, "x2"), ("time", time, "y2"))
        if any(f"{field}_low" in record for record in records)
    ]
    above = base.transform_filter("datum.label && !datum.below")
    names = [above.mark_text(align="left", baseline="bottom", dx=11, dy=-8)]
    if any(record["below"] for record in records):
        below = base.transform_filter("datum.label && datum.below")
        names.append(below.mark_text(align="right", baseline="top", dx=-11, dy=8))
    # Ordered along the front, not by row.
    has_front = sum(record["front"] for record in records) > 1
    advised = any(record["advised"] for record in records)
    layers = [
        *[front.encode(order="cost:Q")] * has_front,
        *bars,
        *[ring] * advised,
        points,
        *(text.encode(text="label:N") for text in names),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    caption = (
        "One point for each row, labelled with its workers where there is room, on the front always."
        + " The dashed line is the Pareto front: no row of sound quality is both faster and cheaper."
        * has_front
        + " The ring marks the advised row." * advised
        + f" Pale lines are 95 % intervals over seeds{cut}." * bool(bars)
        + " Faded rows are, or seem, worse in quality."
        * any(record["opacity"] < 1 for record in records)
    )
    return [figure(NAME, "Time to train against cost", chart, caption)]


def _records(findings: Findings) -> tuple[Records, str, str]:
    """A record for each row with a cost, and the units of time and cost."""
    prices = {
        row.key: row.price
        for row in findings.rows
        if row.price and row.price.cost.value is not None
    }
    unit, length = time_unit([price.seconds.value or 0.0 for price in prices.values()])
    billed, hours = cost_unit([price.cost.value for price in prices.values()])
    named, choice = labels(findings), findings.advice.choice
    verdicts = findings.advice.decision.verdicts or {}
    records: Records = [
        named.fields(key)
        | {
            "workers": str(key.workers),
            "time": rounded((price.seconds.value or 0.0) / length),
            "cost": rounded((price.cost.value or 0.0) / hours),
            "efficiency": rounded(price.efficiency.value or 0.0),
            "front": price.on_front,
            "opacity": FADED if verdicts[key].seems_worse else 1.0,
            "advised": choice is not None and key == choice.key,
            "quality": verdicts[key].sentence,
        }
        | _interval("time", price.seconds.scaled(1 / length))
        | _interval("cost", price.cost.scaled(1 / hours))
        for key, price in prices.items()
    ]
    _label(records)
    return records, unit, billed


def _interval(field: str, estimate: Estimate) -> dict[str, float]:
    """The ends of an interval as fields of a record; none where there is no interval."""
    known = {} if estimate.value is None else ends(estimate)
    return {f"{field}_{end}": known[end] for end in ("low", "high") if end in known}


def _cut(records: Records) -> str:
    """Cut intervals that would shrink the figure to a dot in it; what to say of it in the caption."""
    cut = ""
    for field in ("time", "cost"):
        values = [record[field] for record in records]
        room = (max(values) - min(values)) / 2 or max(values)
        least, most = max(0.0, min(values) - room), max(values) + room
        if is_logarithmic(values):
            least, most = min(values) / BEYOND, max(values) * BEYOND
        for record in records:
            if f"{field}_low" in record:
                low, high = record[f"{field}_low"], record[f"{field}_high"]
                record[f"{field}_low"] = max(low, least)
                record[f"{field}_high"] = min(high, most)
                if (low, high) != (record[f"{field}_low"], record[f"{field}_high"]):
                    cut = ", cut where they are long"
    return cut


def _scale(records: Records, field: str) -> "tuple[alt.Scale, alt.Axis]":
    """Scale and axis of time or cost: logarithmic if it spans much."""
    import altair as alt

    if not is_logarithmic([record[field] for record in records]):
        return alt.Scale(zero=False, padding=24), alt.Axis(tickCount=8)
    fields = (field, f"{field}_low", f"{field}_high")
    shown = [record[name] for record in records for name in fields if name in record]
    low, high = min(shown) / 1.25, max(shown) * 1.25
    return (
        alt.Scale(type="log", domain=[low, high], nice=False),
        alt.Axis(values=log_ticks(low, high), format="~g"),
    )


def _label(records: Records) -> None:
    """Label points by their workers: the advised row and the front always, others if no label is near.

    Of two neighbours on the front, the label of one is below its point.
    """
    if not records:
        return
    places = {
        axis: _places([record[axis] for record in records]) for axis in ("cost", "time")
    }
    named: list[int] = []

    def near(index: int, below: bool) -> bool:
        """Whether a label on this side of the point would lie on one that is there."""
        return any(
            records[other]["below"] == below
            and all(
                abs(places[axis][index] - places[axis][other]) < room
                for axis, room in zip(("cost", "time"), ROOM, strict=True)
            )
            for other in named
        )

    for record in records:
        record["label"], record["below"] = "", False
    crowded = len(records) > MOST_NAMED
    order = range(len(records))
    for index in sorted(
        order,
        key=lambda index: (not records[index]["advised"], not records[index]["front"]),
    ):
        record = records[index]
        always = record["advised"] or record["front"]
        if not always and (crowded or near(index, below=False)):
            continue
        record["label"] = record["workers"]
        record["below"] = bool(near(index, below=False) and not near(index, below=True))
        named.append(index)


def _places(values: list[float]) -> list[float]:
    """Where values lie on their axis, from 0 to 1."""
    if is_logarithmic(values):
        values = [log(value) for value in values]
    span = max(values) - min(values) or 1.0
    return [(value - min(values)) / span for value in values]


def phases(findings: Findings) -> list[Figure]:
    """Wall time by phase, one bar for each row, or for the first if there are many."""
    import altair as alt

    records, names, unit = phase_records(findings)
    if not records:
        return []
    bars = list(dict.fromkeys(record["bar"] for record in records))
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    chart = (
        alt.Chart(data(records))
        .mark_bar(height={"band": 0.78})
        .encode(
            alt.X(
                "time:Q",
                title=f"Wall time ({unit})",
                axis=alt.Axis(grid=True, tickCount=6),
            ),
            alt.Y("bar:N", title=None, sort=bars, axis=alt.Axis(labelLimit=260)),
            alt.Color("phase:N", title="Phase", scale=colours),
            order="order:Q",
            tooltip=tooltip(
                bar="Point",
                phase="Phase",
                time=f"Time ({unit})|,.3~f",
                share="Share|.1%",
            ),
        )
        .properties(width=WIDTH, height=len(bars) * (26 if len(bars) <= 24 else 18))
    )
    rows = len(findings.phases)
    caption = (
        "Wall time of a run by phase, from the start of its processes to its result, mean over seeds."
        " Phases other than training shrink little with more workers."
        + (f" Of {rows} rows, {len(bars)} are drawn." if len(bars) < rows else "")
    )
    return [figure("phases", "Where the time goes", chart, caption)]


def phase_records(findings: Findings) -> tuple[Records, list[str], str]:
    """Mean seconds by phase, the phases in order, and the unit of time."""
    shown = _largest(findings.phases.values())
    unit, length = time_unit(
        [sum(seconds.values()) for seconds in findings.phases.values()]
    )
    named = labels(findings)
    records: Records = []
    for key in list(findings.phases)[:MOST_ROWS]:
        series = named.fields(key)["series"]
        by_phase = findings.phases[key]
        total = sum(by_phase.values()) or 1.0
        for order, (name, members) in enumerate(shown.items()):
            seconds = sum(by_phase.get(member, 0.0) for member in members)
            if seconds > 0:
                records.append(
                    {"series": series, "bar": bar(key), "phase": name, "order": order}
                    | {
                        "time": rounded(seconds / length),
                        "share": rounded(seconds / total),
                    }
                )
    return records, list(shown), unit


def _largest(rows: Iterable[dict[str, float]]) -> dict[str, list[str]]:
    """The phases to show, each with the recorded phases in it: the smallest are merged if there are many."""
    totals: dict[str, float] = {}
    for seconds in rows:
        for name, value in seconds.items():
            totals[name] = totals.get(name, 0.0) + value
    order = [name for name in totals if name != "other"]
    kept = sorted(order, key=lambda name: -totals[name])
    if len(totals) > MOST_PHASES:
        kept = kept[: MOST_PHASES - 1]
    rest = [name for name in totals if name not in kept]
    return {name: [name] for name in order if name in kept} | (
        {"other": rest} if rest else {}
    )
