"""Figures of time: time to train against cost, with the Pareto front, and where the time goes."""

from collections.abc import Iterable
from math import log
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.price import Price
from scalestudy.analysis.runs import Key
from scalestudy.analysis.wording.verdicts import describe_verdict
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
    column,
    ends,
    is_logarithmic,
    labels,
    legend_title,
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
    # One point shows no trade of time against cost.
    if len(records) < 2:
        return []
    named = labels(findings)
    bill = findings.advice.decision.bill
    title = legend_title(findings)
    names = named.shown(records)
    colour, shape = colour_and_shape(names, named.by_strategy, title)
    cut = _cut(records)
    cost_scale, cost_axis = _scale(records, "cost")
    time_scale, time_axis = _scale(records, "time")
    cost_title = f"Cost of one training ({bill}-{billed})"
    time_title = f"Time to train ({unit})"

    def cost(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            title=cost_title,
            scale=cost_scale,
            axis=cost_axis,
        )

    def time(field: str) -> alt.Y:
        return alt.Y(
            f"{field}:Q",
            title=time_title,
            scale=time_scale,
            axis=time_axis,
        )

    base = alt.Chart(data(records)).encode(cost("cost"), time("time"))
    layers: list[Any] = []
    # A line needs two points.
    has_front = column(records, "front").count(True) > 1
    if has_front:
        front = base.transform_filter("datum.front")
        line = front.mark_line(
            strokeDash=[5, 4],
            strokeWidth=1.5,
            color="#6E7781",
        )
        # Ordered along the front, not by row.
        layers.append(line.encode(order="cost:Q"))
    cost_low, time_low = cost("cost_low"), time("time_low")
    bars = _bars(base, records, colour, cost_low, time_low)
    layers += bars
    advised = any(column(records, "advised"))
    # Below the points, so that the ring hides none.
    if advised:
        ring = base.transform_filter("datum.advised")
        layers.append(ring.mark_point(size=420, strokeWidth=2.5).encode(color=colour))
    efficiency = {}
    if findings.advice.decision.reference:
        efficiency = {"efficiency": "Cost efficiency|~g"}
    tips = tooltip(
        strategy="Strategy",
        **named.swept_tip,
        workers="Workers",
        time=f"Time ({unit})|~g",
        cost=f"{bill.capitalize()}-{billed}|~g",
        **efficiency,
        quality="Quality",
    )
    # The values are opacities already.
    opacity = alt.Opacity("opacity:Q", scale=None)
    points = base.mark_point(filled=True, size=110)
    layers.append(points.encode(colour, shape, opacity, tooltip=tips))
    layers += _names(base, records)
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    caption = "One point for each row, labelled with its workers where there is room, on the front always."
    if has_front:
        caption += " The dashed line is the Pareto front: no row of sound quality is both faster and cheaper."
    if advised:
        caption += " The ring marks the advised row."
    if bars:
        caption += f" Pale lines are 95 % intervals over seeds{cut}."
    if min(column(records, "opacity")) < 1:
        caption += " Faded rows are, or seem, worse in quality."
    return [figure(NAME, "Time to train against cost", chart, caption)]


def _bars(
    base: "alt.Chart",
    records: Records,
    colour: "alt.Color",
    cost: "alt.X",
    time: "alt.Y",
) -> list[Any]:
    """Intervals of cost and of time, from their low ends `cost` and `time`, where rows have any."""
    bars: list[Any] = []
    if column(records, "cost_low"):
        known = base.transform_filter("isValid(datum.cost_low)")
        rule = known.mark_rule(strokeWidth=1.5, opacity=FADED)
        bars.append(rule.encode(colour, cost, x2="cost_high:Q"))
    if column(records, "time_low"):
        known = base.transform_filter("isValid(datum.time_low)")
        rule = known.mark_rule(strokeWidth=1.5, opacity=FADED)
        bars.append(rule.encode(colour, time, y2="time_high:Q"))
    return bars


def _names(base: "alt.Chart", records: Records) -> list[Any]:
    """The labels beside the points, above them on the right or below them on the left."""
    above = base.transform_filter("datum.label && !datum.below")
    mark = above.mark_text(
        align="left",
        baseline="bottom",
        dx=11,
        dy=-8,
    )
    names: list[Any] = [mark.encode(text="label:N")]
    if any(column(records, "below")):
        below = base.transform_filter("datum.label && datum.below")
        mark = below.mark_text(
            align="right",
            baseline="top",
            dx=-11,
            dy=8,
        )
        names.append(mark.encode(text="label:N"))
    return names


def _records(findings: Findings) -> tuple[Records, str, str]:
    """A record for each row with a cost, and the units of time and cost."""
    prices: dict[Key, Price] = {}
    for row in findings.rows:
        if row.price and row.price.cost.value is not None:
            prices[row.key] = row.price
    seconds, costs = [], []
    for price in prices.values():
        seconds.append(price.seconds.value or 0.0)
        costs.append(price.cost.value)
    unit, length = time_unit(seconds)
    billed, hours = cost_unit(costs)
    named = labels(findings)
    choice = findings.advice.choice
    verdicts = findings.advice.decision.verdicts or {}
    records: Records = []
    for key, price in prices.items():
        opacity = 1.0
        if verdicts[key].seems_worse:
            opacity = FADED
        record: dict[str, Any] = named.fields(key) | {
            "workers": str(key.workers),
            "time": rounded((price.seconds.value or 0.0) / length),
            "cost": rounded((price.cost.value or 0.0) / hours),
            "efficiency": rounded(price.efficiency.value or 0.0),
            "front": price.on_front,
            "opacity": opacity,
            "advised": choice is not None and key == choice.key,
            "quality": describe_verdict(verdicts[key]),
        }
        record |= _interval("time", price.seconds.scaled(1 / length))
        record |= _interval("cost", price.cost.scaled(1 / hours))
        records.append(record)
    _label(records)
    return records, unit, billed


def _interval(field: str, estimate: Estimate) -> dict[str, float]:
    """The ends of an interval as fields of a record; none where there is no interval."""
    if estimate.value is None:
        return {}
    known = ends(estimate)
    if "low" not in known:
        return {}
    return {f"{field}_low": known["low"], f"{field}_high": known["high"]}


def _cut(records: Records) -> str:
    """Cut intervals that would shrink the figure to a dot in it; what to say of it in the caption."""
    cut = ""
    for field in ("time", "cost"):
        values = column(records, field)
        room = (max(values) - min(values)) / 2 or max(values)
        # No time and no cost is negative.
        least = max(0.0, min(values) - room)
        most = max(values) + room
        if is_logarithmic(values):
            least = min(values) / BEYOND
            most = max(values) * BEYOND
        for record in records:
            if f"{field}_low" not in record:
                continue
            low = record[f"{field}_low"]
            high = record[f"{field}_high"]
            record[f"{field}_low"] = max(low, least)
            record[f"{field}_high"] = min(high, most)
            if low < least or high > most:
                cut = ", cut where they are long"
    return cut


def _scale(records: Records, field: str) -> "tuple[alt.Scale, alt.Axis]":
    """Scale and axis of time or cost: logarithmic if it spans much."""
    import altair as alt

    if not is_logarithmic(column(records, field)):
        return alt.Scale(zero=False, padding=24), alt.Axis(tickCount=8)
    shown = column(records, field)
    shown += column(records, f"{field}_low")
    shown += column(records, f"{field}_high")
    low = min(shown) / 1.25
    high = max(shown) * 1.25
    return (
        alt.Scale(
            type="log",
            domain=[low, high],
            nice=False,
        ),
        alt.Axis(values=log_ticks(low, high), format="~g"),
    )


def _label(records: Records) -> None:
    """Label points by their workers: the advised row and the front always, others if no label is near.

    Of two neighbours on the front, the label of one is below its point.
    """
    if not records:
        return
    costs = _places(column(records, "cost"))
    times = _places(column(records, "time"))
    cost_room, time_room = ROOM
    named: list[int] = []

    def near(index: int, below: bool) -> bool:
        """Whether a label on this side of the point would lie on one that is there."""
        for other in named:
            if records[other]["below"] != below:
                continue
            beside = abs(costs[index] - costs[other]) < cost_room
            if beside and abs(times[index] - times[other]) < time_room:
                return True
        return False

    def by_importance(index: int) -> tuple[bool, bool]:
        return not records[index]["advised"], not records[index]["front"]

    for record in records:
        record["label"], record["below"] = "", False
    crowded = len(records) > MOST_NAMED
    # The first labels have the room; what matters least goes without.
    for index in sorted(range(len(records)), key=by_importance):
        record = records[index]
        always = record["advised"] or record["front"]
        if not always and (crowded or near(index, below=False)):
            continue
        record["label"] = record["workers"]
        record["below"] = near(index, below=False) and not near(index, below=True)
        named.append(index)


def _places(values: list[float]) -> list[float]:
    """Where values lie on their axis, from 0 to 1."""
    if is_logarithmic(values):
        values = [log(value) for value in values]
    least = min(values)
    # Equal values lie in one place.
    span = max(values) - least or 1.0
    return [(value - least) / span for value in values]


def phases(findings: Findings) -> list[Figure]:
    """Wall time by phase, one bar for each row, or for the first if there are many."""
    import altair as alt

    records, names, unit = phase_records(findings)
    if not records:
        return []
    bars = list(dict.fromkeys(column(records, "bar")))
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    x_axis = alt.Axis(grid=True, tickCount=6)
    bar_height = 26
    if len(bars) > 24:
        bar_height = 18
    chart = (
        alt.Chart(data(records))
        .mark_bar(height={"band": 0.78})
        .encode(
            alt.X("time:Q", title=f"Wall time ({unit})", axis=x_axis),
            alt.Y(
                "bar:N",
                title=None,
                sort=bars,
                axis=alt.Axis(labelLimit=260),
            ),
            alt.Color("phase:N", title="Phase", scale=colours),
            order="order:Q",
            tooltip=tooltip(
                bar="Point",
                phase="Phase",
                time=f"Time ({unit})|,.3~f",
                share="Share|.1%",
            ),
        )
        .properties(
            width=WIDTH,
            height=len(bars) * bar_height,
        )
    )
    caption = (
        "Wall time of a run by phase, from the start of its processes to its result, mean over seeds."
        " Phases other than training shrink little with more workers."
    )
    rows = len(findings.phases)
    if len(bars) < rows:
        caption += f" Of {rows} rows, {len(bars)} are drawn."
    return [figure("phases", "Where the time goes", chart, caption)]


def phase_records(findings: Findings) -> tuple[Records, list[str], str]:
    """Mean seconds by phase, the phases in order, and the unit of time."""
    shown = _largest(findings.phases.values())
    totals = [sum(seconds.values()) for seconds in findings.phases.values()]
    unit, length = time_unit(totals)
    named = labels(findings)
    records: Records = []
    for key in list(findings.phases)[:MOST_ROWS]:
        series = named.fields(key)["series"]
        by_phase = findings.phases[key]
        total = sum(by_phase.values()) or 1.0
        for order, (name, members) in enumerate(shown.items()):
            seconds = sum([by_phase.get(member, 0.0) for member in members])
            if seconds <= 0:
                continue
            records.append(
                {
                    "series": series,
                    "bar": bar(key),
                    "phase": name,
                    "order": order,
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
    named = [name for name in totals if name != "other"]
    # The same phases in each bar, so that a colour has one meaning.
    kept = sorted(named, key=lambda name: -totals[name])
    if len(totals) > MOST_PHASES:
        kept = kept[: MOST_PHASES - 1]
    shown, rest = {}, []
    # In the order in which they were recorded.
    for name in totals:
        if name in kept:
            shown[name] = [name]
        else:
            rest.append(name)
    if rest:
        shown["other"] = rest
    return shown
