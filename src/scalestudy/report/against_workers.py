"""Figures against worker counts: speed-up, efficiency and cost, quality; each with others in its place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import metric_of
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import direction_label, metric_label, whole_metrics
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.table import Row
from scalestudy.report import series
from scalestudy.report.axes import dodge, domain, is_logarithmic, workers
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure, tooltip
from scalestudy.report.format import decimals, number
from scalestudy.report.series import BASIS_WORDS, MOST_PANELS, basis_of
from scalestudy.report.style import colour_and_shape
from scalestudy.study.metrics import known
from scalestudy.util import units

if TYPE_CHECKING:
    import altair as alt

WALL = "from start to result"
"""What a speed-up of wall clock is of, in words."""
IDEAL = {
    BASIS_WORDS["throughput"]: "the samples per second",
    BASIS_WORDS["epoch"]: "shorter epochs",
    BASIS_WORDS["training"]: "shorter training",
    WALL: "shorter from start to result",
}
MOST_BASELINES = 6
"""Rows whose absolute performance a caption states."""
REACH = 1.5
"""How far bars of speed-up may reach beyond its largest and least value: one wide interval hides no curve."""
LEAST_COUNTS = 3
"""Worker counts of a series from which a line joins its points: through two, any line goes."""
LOW = 220
"""Height in pixels of panels, and of figures of few counts."""


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

    def encoding(self) -> "alt.Y":
        """As Altair has it."""
        import altair as alt

        scale: dict[str, Any] = {"domain": [self.low, self.high], "nice": False, "zero": False}
        if self.logarithmic:
            scale |= {"type": "log", "base": 2}
        axis = alt.Axis(tickCount=6, format="~g") if self.logarithmic else alt.Axis(tickCount=6)
        return alt.Y("value:Q", title=self.title, scale=alt.Scale(**scale), axis=axis)


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
    return [made for way in ways if (made := _speedup(findings, *way))]


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
    least, most = (min(ends) / 1.15, max(ends) * 1.15) if logarithmic else _around([0.0, *ends], zero=True)
    y = Vertical("Speed-up S", least, most, logarithmic)
    chart = _lines(findings, records, y, "S", [Guide(((low, low), (high, high)), "ideal")])
    bends = "A curve that bends away from it loses time to what does not share out. "
    if len(counts) < LEAST_COUNTS:
        bends = "Two counts show one gain, not a curve: sweep more to see where it ends. "
    relative = any(row.speed.against > 1 for row in findings.rows)
    caption = (
        f"The dashed line is ideal: n workers, n times {IDEAL.get(basis, 'as fast')}."
        f" {_absolute(findings, basis)}{bends}"
        + "Relative speed-ups, against n0 workers, are drawn n0 times as high: on the ideal at n0. "
        * relative
        + f"{_bars(records)}{cut}{_left_out(findings)}"
    )
    choice = basis if basis == WALL else f"of {basis}"
    return _figure(findings, name, "Speed-up", chart, caption, "speedup", choice)


def _absolute(findings: Findings, basis: str) -> str:
    """What speed-ups are multiples of, as absolute numbers (Hoefler and Belli, SC15, rule 1)."""
    keys = dict.fromkeys(row.speed.baseline for row in findings.rows)
    rows = [row for row in findings.rows if row.key in keys]
    values: dict[int, list[str]] = {}
    for row in rows[:MOST_BASELINES]:
        if value := _performance(row, basis):
            name = row.strategy + (f", {row.key.details}" if row.key.details else "")
            values.setdefault(row.workers, []).append(f"{value} ({name})")
    sentences = [f"{n} worker{'s' * (n > 1)}: {'; '.join(listed)}. " for n, listed in values.items()]
    if len(rows) > MOST_BASELINES:
        sentences.append(f"The table has {len(rows) - MOST_BASELINES} more. ")
    return "".join(sentences)


def _performance(row: Row, basis: str) -> str:
    """Absolute performance of a row in what a speed-up is the ratio of; "" where it is not known."""
    seconds = {WALL: row.wall_seconds, BASIS_WORDS["training"]: row.training_seconds}.get(basis)
    if seconds is not None:
        return "" if seconds.value is None else units.duration(seconds.value)
    rate = row.throughput.value
    return "" if rate is None else f"{number(rate, decimals([rate]))} samples/s"


def efficiency(findings: Findings) -> list[Figure]:
    """Scaling efficiency, and cost efficiency against what is asked for."""
    absolute = _absolute(findings, basis_of(findings.rows))
    target = findings.target
    made = [
        _efficiency(
            findings, "efficiency", "Scaling efficiency", lambda row: row.efficiency, ((1.0, "ideal"),),
            f"The share of each worker that pays, against the strategy's own one worker. {absolute}",
        ),
        _efficiency(
            findings, "cost-efficiency", "Cost efficiency",
            lambda row: row.price.efficiency if row.price else NOTHING,
            ((1.0, "reference"), (target, f"asked: {target:g}")),
            "Cost of the cheapest one-worker row of as good a model over a row's. What lies below the lower"
            f" dashed line keeps less than the {target:g} that was asked for. ",
        ),
    ]  # fmt: skip
    return [figure for figure in made if figure]


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
    _, most = _around([0.0, 1.06, *series.reach(records)], zero=True)
    ends = domain(counts)
    guides = [Guide(((ends[0], level), (ends[1], level)), text) for level, text in levels]
    chart = _lines(findings, records, Vertical(title, 0.0, most), title, guides)
    caption = f"{words}{_bars(records)}{cut}{_left_out(findings)}"
    return _figure(findings, name, title, chart, caption, "efficiency", title)


def quality(findings: Findings) -> list[Figure]:
    """Quality with its intervals, and the other metrics of the runs; none where there is one row."""
    if len(findings.rows) < 2:
        return []
    asked = findings.rows[0].metric
    made = [_metric(findings, asked, "quality", lambda row: row.quality)]
    for name in whole_metrics(findings.runs):
        if name != asked:
            made.append(_metric(findings, name, f"metric-{name}", _of_metric(findings, name)))
    return [figure for figure in made if figure]


def _of_metric(findings: Findings, name: str) -> Callable[[Row], Estimate]:
    return lambda row: metric_of(findings.measures.groups[row.key], name)


def _metric(findings: Findings, metric: str, name: str, of: Callable[[Row], Estimate]) -> Figure | None:
    records = series.measured(findings, of)
    if not records:
        return None
    sense = findings.rows[0].sense if name == "quality" else known(metric)
    label, stated = metric_label(metric), all(run.foreign for run in findings.runs)
    split = "" if stated else f" ({findings.runs[0].result.quality_split} set)"
    title = ", ".join(filter(None, (f"{label}{split}", direction_label(sense.better))))
    # A metric in [0, 1] whose values are not is one in per cent.
    bounded = sense.bounded and max(float(record["value"]) for record in records) <= 1
    cut = _cut(records, 0.0, 1.0) if bounded else ""
    # Less than the margin of the verdicts is not seen as much.
    values = series.reach(records)
    held = values + [
        record["value"] + side * accepted_loss(record["value"], sense, findings.margin)
        for record in records
        for side in (-1, 1)
    ]
    # One value alone spans no scale: its axis says 0 beside it.
    y = Vertical(title, *_around(held, zero=len(set(values)) == 1))
    costs = {"higher": "falling", "lower": "rising", None: "a change to the bad"}[sense.better]
    grows = len({row.global_batch for row in findings.rows}) > 1
    what = "the larger global batch costs" if grows else "more workers cost"
    several = len({record["workers"] for record in records}) > 1
    caption = f"{label} {'as its files state it' if stated else 'of the saved model'}."
    caption += f" Level is good, {costs} means that {what} quality." if several else ""
    caption += f" {_bars(records)}{cut}{_left_out(findings)}"
    shown = "Quality" if name == "quality" else f"{label[0].upper()}{label[1:]}"
    return _figure(findings, name, shown, _lines(findings, records, y, label), caption, "quality", label)


def _figure(
    findings: Findings, name: str, title: str, chart: Any, caption: str, group: str, choice: str
) -> Figure:
    wide = bool(series.panels(findings))
    return figure(name, f"{title} against workers", chart, caption, wide, group=group, choice=choice)


def _around(values: Sequence[float], zero: bool) -> tuple[float, float]:
    """Ends of an axis that holds these values with a little room, from 0 on where asked."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return (min(0.0, low), high + room) if zero else (low - room, high + room)


def _cut(records: series.Records, least: float, most: float) -> str:
    """Cut bars at `least` and `most`; what to say of it in the caption."""
    changed = False
    for record in records:
        if "low" in record:
            low, high = max(least, record["low"]), min(most, record["high"])
            changed = changed or (low, high) != (record["low"], record["high"])
            record["low"], record["high"] = low, high
    return f" They are cut at {least:.3g} and {most:.3g}." if changed else ""


def _bars(records: series.Records) -> str:
    if any("low" in record for record in records):
        return "Bars are 95 % intervals over seeds; they are set slightly apart so that none hides another."
    return "One run each, so there are no intervals."


def _left_out(findings: Findings) -> str:
    """What to say of panels that are too many; empty where all are drawn."""
    count = len(series.panels(findings))
    return (
        f" Of {count} combinations of swept values, {MOST_PANELS} are drawn." if count > MOST_PANELS else ""
    )


def _lines(
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

    labels, panels = series.labels(findings), series.panels(findings)[:MOST_PANELS]
    records = [record for record in records if not panels or record["variant"] in panels]
    counts = sorted({record["workers"] for record in records})
    shown = labels.shown(records)
    colour, shape = colour_and_shape(shown, labels.by_strategy, _legend_title(findings, labels))
    has_bars = any("low" in record for record in records)
    joined: dict[tuple[str, str], set[int]] = {}
    for record in records:
        joined.setdefault((record["strategy"], record["variant"]), set()).add(record["workers"])
    for record in records:
        shift, factor = dodge(counts, shown.index(record["series"]), len(shown)) if has_bars else (0.0, 1.0)
        record["place"] = round(record["workers"] * factor + shift, 4)
        record["joined"] = len(joined[record["strategy"], record["variant"]]) >= LEAST_COUNTS
    source = data(records)
    picked = alt.selection_point(name="picked", fields=["series"], bind="legend")
    several = len(shown) > 1
    faded = alt.when(picked).then(alt.value(1.0)).otherwise(alt.value(0.12)) if several else alt.value(1.0)
    x = workers(counts, "place")
    drawn = alt.Chart(source).encode(x, y.encoding(), colour, opacity=faded)
    layers: list[Any] = []
    for guide in guides:
        ends = data([{"place": place, "value": value} for place, value in guide.ends])
        dashed = alt.Chart(ends).mark_line(strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(dashed.encode(x, y.encoding()))
    if any(record["joined"] for record in records):
        layers.append(drawn.transform_filter("datum.joined").mark_line(strokeWidth=2.5))
    if has_bars:
        bars = drawn.transform_filter("isValid(datum.low)")
        layers.append(bars.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"))
        tick = bars.mark_tick(thickness=2, size=9, orient="horizontal")
        layers += [tick.encode(y=f"{end}:Q") for end in ("low", "high")]
    swept = {"variant": "Swept"} if len(labels.variants) > 1 else {}
    tips = tooltip(strategy="Strategy", **swept, workers="Workers", text=name, runs="Runs")
    points = drawn.mark_point(filled=True, size=80).encode(shape=shape, tooltip=tips)
    layers.append(points.add_params(picked) if several else points)
    if panels:
        return _in_panels(layers, source, panels)
    if guides:
        names = [{"text": guide.name, "value": guide.ends[1][1]} for guide in guides]
        mark = alt.Chart(data(names)).mark_text(align="left", baseline="middle", dx=6)
        layers.append(mark.encode(x=alt.value("width"), y=y.encoding(), text="text:N"))
    height = LOW + 20 if len(counts) < LEAST_COUNTS else HEIGHT
    return alt.layer(*layers).properties(width=WIDTH, height=height)


def _legend_title(findings: Findings, labels: series.Labels) -> str:
    return "Strategy" if labels.by_strategy else ", ".join(findings.rows[0].key.swept)


def _in_panels(layers: list[Any], source: Any, panels: Sequence[str]) -> Any:
    import altair as alt

    for layer in layers:
        if layer.data is source:  # a layer with data of its own would show all of them in each panel
            layer.data = alt.Undefined
    chart = alt.layer(*layers, data=source).properties(width=WIDTH // 2 - 40, height=LOW)
    return chart.facet(facet=alt.Facet("variant:N", title=None, sort=list(panels)), columns=2)
