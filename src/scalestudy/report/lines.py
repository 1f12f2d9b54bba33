"""Lines against worker counts: one colour, shape and dash a series, named where it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.findings import Findings
from scalestudy.report import series
from scalestudy.report.axes import dodge, workers
from scalestudy.report.figure import HEIGHT, WIDTH, data
from scalestudy.report.style import series_dashes, series_style
from scalestudy.report.thin import apart

if TYPE_CHECKING:
    import altair as alt

GUIDE: dict[str, Any] = {"strokeDash": [5, 4], "strokeWidth": 1.5}
LEAST_COUNTS = 3
"""Worker counts of a series from which a line joins its points: through two, any line goes."""
MOST_NAMED = 7
"""Series that are named where they end; more have no room there."""
MOST_PANELS = 12
LINE = 15.0
"""Height of a label in pixels."""
LEAST_HEIGHT = 220
"""Of a figure, in pixels: on a phone, or of few counts."""


@dataclass(frozen=True)
class Guide:
    """A line to read others by: its ends as (workers, value), and its name."""

    ends: tuple[tuple[float, float], tuple[float, float]]
    name: str


@dataclass(frozen=True)
class Vertical:
    """The axis of the values: its title, its ends, and whether it is logarithmic (to base 2)."""

    title: str
    low: float
    high: float
    logarithmic: bool = False

    def encoding(self, field: str = "value") -> "alt.Y":
        """As Altair has it."""
        import altair as alt

        scale: dict[str, Any] = {"domain": [self.low, self.high], "nice": False, "zero": False}
        if self.logarithmic:
            scale |= {"type": "log", "base": 2}
        axis = alt.Axis(tickCount=6, format="~g") if self.logarithmic else alt.Axis(tickCount=6)
        return alt.Y(f"{field}:Q", title=self.title, scale=alt.Scale(**scale), axis=axis)

    def apart(self, values: Sequence[float]) -> list[float]:
        """Where labels of these values stand, so that none lies on another even in a low figure."""
        there, back = (log2, lambda place: 2.0**place) if self.logarithmic else (float, float)
        low, high = there(self.low), there(self.high)
        gap = LINE / LEAST_HEIGHT * (high - low)
        return [back(place) for place in apart([there(value) for value in values], gap, low, high)]


def around(values: Sequence[float], zero: bool) -> tuple[float, float]:
    """Ends of an axis that holds these values with a little room, from 0 on where asked."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return (min(0.0, low), high + room) if zero else (low - room, high + room)


def lines(
    findings: Findings, records: series.Records, y: Vertical, name: str, guides: Sequence[Guide] = ()
) -> Any:
    """A chart of records with `workers`, `value` perhaps `low` and `high`; in panels by variant if need be.

    Args:
        findings: The study.
        records: As `series.measured` makes them; those of panels too many are left out.
        y: Axis of the values.
        name: Of the value, in tooltips.
        guides: Lines to read the others by.
    """
    import altair as alt

    labels = series.labels(findings)
    panels = series.panels(findings)
    records = [record for record in records if not panels or record["variant"] in panels[:MOST_PANELS]]
    counts = sorted({record["workers"] for record in records})
    shown = [label for label in labels.names if any(record["series"] == label for record in records)]
    encoded = _Encoded.of(labels, shown, findings)
    has_bars = any("low" in record for record in records)
    for record in records:
        shift, factor = dodge(counts, shown.index(record["series"]), len(shown)) if has_bars else (0.0, 1.0)
        # Of another name than the series, or their legend would draw its symbols in dashes too.
        record["dash"] = _dash(record["series"])
        record["place"] = round(record["workers"] * factor + shift, 4)
    source = data(records)
    picked = alt.selection_point(name="picked", fields=["series"], bind="legend")
    several = len(shown) > 1
    faded = alt.when(picked).then(alt.value(1.0)).otherwise(alt.value(0.12)) if several else alt.value(1.0)
    drawn = alt.Chart(source).encode(workers(counts, "place"), y.encoding(), encoded.colour, opacity=faded)
    layers: list[Any] = [_guide(guide, counts, y) for guide in guides]
    if _join(records):
        joined = drawn.transform_filter("datum.joined")
        layers.append(joined.mark_line(strokeWidth=2.5).encode(strokeDash=encoded.dash))
    if has_bars:
        bars = drawn.transform_filter("isValid(datum.low)")
        layers.append(bars.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"))
        tick = bars.mark_tick(thickness=2, size=9, orient="horizontal")
        layers += [tick.encode(y=f"{end}:Q") for end in ("low", "high")]
    tooltip = [
        alt.Tooltip("strategy:N", title="Strategy"),
        *([alt.Tooltip("variant:N", title="Swept")] if len(labels.variants) > 1 else []),
        alt.Tooltip("workers:Q", title="Workers"),
        alt.Tooltip("text:N", title=name),
        alt.Tooltip("runs:Q", title="Runs"),
    ]
    points = drawn.mark_point(filled=True, size=80).encode(shape=encoded.shape, tooltip=tooltip)
    layers.append(points.add_params(picked) if several else points)
    if panels:
        return _panels(layers, source, panels[:MOST_PANELS])
    named = _named(records, shown, counts) if several and len(shown) <= MOST_NAMED else []
    ends = [(guide.ends[1][1], guide.name) for guide in guides]
    places = y.apart([value for value, _ in [*ends, *((r["value"], r["series"]) for r in named)]])
    layers += _labels(ends, places[: len(ends)], y)
    layers += _names(named, places[len(ends) :], y, encoded, faded)
    few = len(counts) < LEAST_COUNTS
    height = LEAST_HEIGHT + 20 if few else HEIGHT
    return alt.layer(*layers).properties(width=WIDTH, height=height)


def left_out(findings: Findings) -> str:
    """What to say of panels that are too many; empty where all are drawn."""
    number = len(series.panels(findings))
    return (
        f" Of {number} combinations of swept values, {MOST_PANELS} are drawn." if number > MOST_PANELS else ""
    )


@dataclass(frozen=True)
class _Encoded:
    """How series look; without a legend where there is but one."""

    colour: Any
    shape: Any
    dash: Any

    @staticmethod
    def of(labels: series.Labels, shown: list[str], findings: Findings) -> "_Encoded":
        import altair as alt

        colours, shapes = series_style(shown, shown, labels.by_strategy)
        dashes = alt.Scale(
            domain=[_dash(name) for name in shown],
            range=[list(dash) for dash in series_dashes(shown, labels.by_strategy)],
        )
        title = "Strategy" if labels.by_strategy else ", ".join(findings.rows[0].key.swept)
        legend = alt.Legend(symbolOpacity=1) if len(shown) > 1 else None
        return _Encoded(
            alt.Color("series:N", title=title, scale=alt.Scale(domain=shown, range=colours), legend=legend),
            alt.Shape("series:N", title=title, scale=alt.Scale(domain=shown, range=shapes), legend=legend),
            alt.StrokeDash("dash:N", scale=dashes, legend=None),
        )


def _dash(series: str) -> str:
    return f"dash of {series}"


def _join(records: series.Records) -> bool:
    """Mark the records of series of enough counts, each within its panel; whether there are any."""
    counts: dict[tuple[str, str], set[int]] = {}
    for record in records:
        counts.setdefault((record["strategy"], record["variant"]), set()).add(record["workers"])
    for record in records:
        record["joined"] = len(counts[record["strategy"], record["variant"]]) >= LEAST_COUNTS
    return any(record["joined"] for record in records)


def _guide(guide: Guide, counts: Sequence[int], y: Vertical) -> Any:
    import altair as alt

    ends = [{"place": place, "value": value} for place, value in guide.ends]
    return alt.Chart(data(ends)).mark_line(**GUIDE).encode(workers(counts, "place"), y.encoding())


def _panels(layers: list[Any], source: Any, panels: Sequence[str]) -> Any:
    import altair as alt

    for layer in layers:
        if layer.data is source:  # a layer with data of its own would show all of them in each panel
            layer.data = alt.Undefined
    chart = alt.layer(*layers, data=source).properties(width=WIDTH // 2 - 40, height=LEAST_HEIGHT)
    return chart.facet(facet=alt.Facet("variant:N", title=None, sort=list(panels)), columns=2)


def _named(records: series.Records, shown: Sequence[str], counts: Sequence[int]) -> series.Records:
    """The last record of each series that reaches the largest count; of others the end is elsewhere."""
    last = [record for record in records if record["workers"] == counts[-1]]
    return [record for name in shown for record in last if record["series"] == name]


def _labels(ends: Sequence[tuple[float, str]], places: Sequence[float], y: Vertical) -> list[Any]:
    """Names of guides, beside the figure."""
    import altair as alt

    if not ends:
        return []
    rows = [{"text": text, "place": place} for (_, text), place in zip(ends, places, strict=True)]
    mark = alt.Chart(data(rows)).mark_text(align="left", baseline="middle", dx=6)
    return [mark.encode(x=alt.value("width"), y=y.encoding("place"), text="text:N")]


def _names(
    named: series.Records, places: Sequence[float], y: Vertical, encoded: _Encoded, faded: Any
) -> list[Any]:
    """Shape and name of series, beside the figure where they end."""
    import altair as alt

    if not named:
        return []
    rows = [{"series": record["series"], "place": place} for record, place in zip(named, places, strict=True)]
    base = alt.Chart(data(rows)).encode(x=alt.value("width"), y=y.encoding("place"), opacity=faded)
    shape = base.mark_point(filled=True, size=50, xOffset=10).encode(encoded.colour, encoded.shape)
    text = base.mark_text(align="left", baseline="middle", dx=19).encode(text="series:N")
    return [shape.properties(name="names-shapes"), text.properties(name="names-texts")]
