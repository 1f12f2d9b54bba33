"""Figures against the number of workers: speed-up, efficiency, cost and quality."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.estimate import NOTHING, Estimate
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.quality import accepted_loss
from scalestudy.analysis.runs import all_foreign, direction_label, metric_label
from scalestudy.analysis.study_table import Row
from scalestudy.config.metric_senses import Sense
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.report import figure_data
from scalestudy.report.figure import (
    HEIGHT,
    WIDTH,
    Figure,
    colour_and_shape,
    data,
    figure,
    tooltip,
)
from scalestudy.report.figure_data import (
    BASIS_WORDS,
    MOST_PANELS,
    basis_of,
    column,
    dodge,
    domain,
    is_logarithmic,
    workers_axis,
)
from scalestudy.report.number_format import decimals, format_number
from scalestudy.util import units
from scalestudy.util.text import plural

if TYPE_CHECKING:
    import altair as alt

IDEAL = {
    BASIS_WORDS["throughput"]: "the samples per second",
    BASIS_WORDS["epoch"]: "shorter epochs",
    BASIS_WORDS["training"]: "shorter training",
}
MOST_BASELINES = 6
"""How many baselines a caption gives absolute performance for."""
REACH = 1.5
"""Factor by which intervals of speed-up may exceed its range, so that a wide interval hides no curve."""
LEAST_COUNTS = 3
"""Numbers of workers from which a line joins a series' points: any line fits two points."""
LOW = 220
"""Height in pixels of panels, and of figures with few numbers of workers."""

Guide = tuple[str, Sequence[tuple[float, float]]]
"""A reference line: its name, and its ends as (workers, value)."""


def speedup(findings: Findings) -> list[Figure]:
    """Speed-up of throughput and of training time with its ideal; none with one number of workers.

    Numbers from other tools may lack throughput; then one figure shows times.
    """
    basis = basis_of(findings.rows)
    training = BASIS_WORDS["training"]
    drawn = [_speedup(findings, "speedup", basis, lambda row: row.speed.steady)]
    # Tables that lack throughput are compared by times already: the same figure again.
    if basis != training:
        of_training = _speedup(
            findings,
            "speedup-training",
            training,
            lambda row: row.speed.training,
        )
        drawn.append(of_training)
    return [figure for figure in drawn if figure]


def _speedup(
    findings: Findings,
    name: str,
    basis: str,
    of: Callable[[Row], Estimate],
) -> Figure | None:
    import altair as alt

    # A relative speed-up starts at 1 on n0 workers; the ideal line is at n0 there.
    def on_ideal_line(row: Row) -> Estimate:
        return of(row).scaled(float(row.speed.against))

    records = figure_data.measured_records(findings, on_ideal_line)
    counts = _counts(records)
    if len(counts) < 2:
        return None
    low = float(counts[0])
    high = float(counts[-1])
    values = [*map(float, column(records, "value"))]
    if is_logarithmic(counts):
        # A logarithmic axis has no 0 to begin at.
        least = min(values) / REACH
        scale = alt.Scale(
            type="log",
            base=2,
            nice=False,
        )
    else:
        least = 0.0
        scale = alt.Scale(zero=True)
    most = max(high, *values)
    cut = _cut(records, least, most * REACH)
    axis = alt.Axis(tickCount=6, format="~g")
    y = alt.Y(
        "value:Q",
        title="Speed-up S",
        scale=scale,
        axis=axis,
    )
    ideal = ("ideal", ((low, low), (high, high)))
    chart = _lines(findings, records, y, "S", [ideal])
    bends = "A curve below it loses time to work that is not divided. "
    # Any line fits two points, so that nothing bends there.
    if len(counts) < LEAST_COUNTS:
        bends = "Two numbers of workers show one gain, not a curve: sweep more. "
    relative = ""
    if any(row.speed.against > 1 for row in findings.rows):
        relative = "Relative speed-ups, against n0 workers, are multiplied by n0: they start on the ideal line. "
    caption = (
        f"The dashed line is ideal: n workers, n times {IDEAL.get(basis, 'as fast')}."
        f" {_absolute(findings, basis)}{bends}{relative}{_bars(records)}{cut}"
    )
    return _figure(findings, name, "Speed-up", chart, caption, "speedup", f"of {basis}")


def _counts(records: figure_data.Records) -> list[int]:
    """The different numbers of workers, in order."""
    return sorted(set(column(records, "workers")))


def _absolute(findings: Findings, basis: str) -> str:
    """Absolute performance of the baselines (Hoefler and Belli, SC15, rule 1)."""
    keys = {row.speed.baseline for row in findings.rows}
    rows = [row for row in findings.rows if row.key in keys]
    values: dict[int, list[str]] = {}
    # Ratios alone hide how fast the baseline is (Hoefler and Belli, rule 1).
    for row in rows[:MOST_BASELINES]:
        if value := _performance(row, basis):
            name = row.strategy
            if row.key.details:
                name += f", {row.key.details}"
            values.setdefault(row.workers, []).append(f"{value} ({name})")
    text = ""
    for count, listed in values.items():
        text += f"{count} {plural('worker', count)}: {'; '.join(listed)}. "
    return text


def _performance(row: Row, basis: str) -> str:
    """Absolute performance of a row on the basis of a speed-up; "" if unknown."""
    seconds = row.training_seconds.value
    rate = row.throughput.value
    if basis == BASIS_WORDS["training"]:
        if seconds is None:
            return ""
        return units.duration(seconds)
    if rate is None:
        return ""
    return f"{format_number(rate, decimals([rate]))} samples/s"


def efficiency(findings: Findings) -> list[Figure]:
    """Scaling efficiency, and cost efficiency with its target."""
    target = findings.criteria.target
    drawn = (
        _efficiency(
            findings,
            "efficiency",
            "Scaling efficiency",
            lambda row: row.efficiency,
            {"ideal": 1.0},
            "Speed-up over one worker of the same strategy, divided by the number of workers."
            f" {_absolute(findings, basis_of(findings.rows))}",
        ),
        _efficiency(
            findings,
            "cost-efficiency",
            "Cost efficiency",
            lambda row: row.price.efficiency if row.price else NOTHING,
            {"reference": 1.0, f"target: {target:g}": target},
            "Cost of the cheapest one-worker row of equal quality, divided by the cost of a row. Rows below"
            f" the lower dashed line miss the target of {target:g}. ",
        ),
    )
    return [figure for figure in drawn if figure]


def _efficiency(
    findings: Findings,
    name: str,
    title: str,
    of: Callable[[Row], Estimate],
    levels: dict[str, float],
    words: str,
) -> Figure | None:
    """An efficiency with reference lines; None with one number of workers."""
    import altair as alt

    records = figure_data.measured_records(findings, of)
    counts = _counts(records)
    if len(counts) < 2:
        return None
    values = map(float, column(records, "value"))
    cut = _cut(records, 0.0, max(1.5, *values))
    first, last = domain(counts)
    guides = []
    for text, level in levels.items():
        guides.append((text, ((first, level), (last, level))))
    scale = alt.Scale(zero=True)
    axis = alt.Axis(tickCount=6)
    y = alt.Y(
        "value:Q",
        title=title,
        scale=scale,
        axis=axis,
    )
    chart = _lines(findings, records, y, title, guides)
    return _figure(
        findings,
        name,
        title,
        chart,
        f"{words}{_bars(records)}{cut}",
        "efficiency",
        title,
    )


def quality(findings: Findings) -> list[Figure]:
    """Quality with its intervals; none for a single row."""
    import altair as alt

    records = figure_data.measured_records(findings, lambda row: row.quality)
    # A single quality is in the table: there is nothing to compare it with.
    if len(findings.rows) < 2 or not records:
        return []
    sense = findings.rows[0].sense
    label = metric_label(findings.rows[0].metric)
    stated = all_foreign(findings.runs)
    title = label
    # Of imported numbers it is not known on which set they were measured.
    if not stated:
        title += f" ({findings.runs[0].result.quality_split} set)"
    if direction := direction_label(sense.better):
        title += f", {direction}"
    # A metric in [0, 1] with larger values is given in per cent.
    highest = max(map(float, column(records, "value")))
    cut = ""
    if sense.bounded and highest <= 1:
        cut = _cut(records, 0.0, 1.0)
    # Without the margin in it, an axis would show differences within the margin as large ones.
    domain = _quality_domain(records, sense, findings.criteria.margin)
    scale = alt.Scale(
        domain=domain,
        nice=False,
        zero=False,
    )
    y = alt.Y(
        "value:Q",
        title=title,
        scale=scale,
        axis=alt.Axis(tickCount=6),
    )
    caption = f"{label} of the saved model."
    if stated:
        caption = f"{label} as stated in its files."
    if len(_counts(records)) > 1:
        caption += f" {_how_to_read_quality(findings.rows)}"
    chart = _lines(findings, records, y, label)
    caption += f" {_bars(records)}{cut}"
    return [_figure(findings, "quality", "Quality", chart, caption, "quality", label)]


def _quality_domain(
    records: figure_data.Records,
    sense: Sense,
    margin: QualityMargin | None,
) -> list[float]:
    """Ends of the axis: it spans at least the margin of the verdicts; a single value spans no axis."""
    values = figure_data.values_and_ends(records)
    alone = len(set(values)) == 1
    for record in records:
        accepted = accepted_loss(record["value"], sense, margin)
        values.append(record["value"] - accepted)
        values.append(record["value"] + accepted)
    least = min(values)
    most = max(values)
    room = 0.06 * (most - least) or 1.0
    if alone:
        return [min(0.0, least), most + room]
    return [least - room, most + room]


def _how_to_read_quality(rows: Sequence[Row]) -> str:
    words = {"higher": "falling", "lower": "rising", None: "a change to the bad"}
    costs = words[rows[0].sense.better]
    what = "more workers cost"
    batches = {row.global_batch for row in rows}
    if len(batches) > 1:
        what = "the larger global batch costs"
    return f"Flat is good; {costs} means {what} quality."


def _figure(
    findings: Findings,
    name: str,
    title: str,
    chart: Any,
    caption: str,
    group: str,
    choice: str,
) -> Figure:
    panels = len(figure_data.panels(findings))
    if findings.advice.choice is not None:
        caption += " The ring marks the advised row."
    # A figure that leaves out something says so.
    if panels > MOST_PANELS:
        caption += (
            f" Of {panels} combinations of swept values, {MOST_PANELS} are drawn."
        )
    return figure(
        name,
        f"{title} against workers",
        chart,
        caption,
        wide=panels > 0,
        group=group,
        choice=choice,
    )


def _cut(records: figure_data.Records, least: float, most: float) -> str:
    """Cut bars at `least` and `most`; return a sentence on it for the caption."""
    changed = False
    for record in records:
        if "low" in record:
            if record["low"] < least or record["high"] > most:
                changed = True
            record["low"] = max(least, record["low"])
            record["high"] = min(most, record["high"])
    if not changed:
        return ""
    return f" They are cut at {least:.3g} and {most:.3g}."


def _bars(records: figure_data.Records) -> str:
    if column(records, "low"):
        return "Bars are 95 % intervals over seeds, drawn slightly apart."
    return "One run each, so there are no intervals."


def _lines(
    findings: Findings,
    records: figure_data.Records,
    y: "alt.Y",
    name: str,
    guides: Sequence[Guide] = (),
) -> Any:
    """A chart of records from `figure_data.measured_records`, in panels by variant if there are several.

    Those beyond `MOST_PANELS` panels are left out. `name` is that of the value in tooltips.
    """
    import altair as alt

    labels = figure_data.labels(findings)
    panels = figure_data.panels(findings)[:MOST_PANELS]
    if panels:
        records = [record for record in records if record["variant"] in panels]
    counts = _counts(records)
    shown = labels.shown(records)
    has_bars = bool(column(records, "low"))
    # Bars at one number of workers would lie on each other.
    _place_points(records, counts, shown, has_bars)
    legend = figure_data.legend_title(findings)
    colour, shape = colour_and_shape(shown, labels.by_strategy, legend)
    source = data(records)
    x = workers_axis(counts, "place")
    drawn = alt.Chart(source).encode(x, y, colour, opacity=alt.value(1.0))
    layers: list[Any] = []
    for _, ends in guides:
        points = []
        for place, value in ends:
            points.append({"place": place, "value": value})
        line = alt.Chart(data(points)).mark_line(strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(line.encode(x, y))
    tips = tooltip(
        strategy="Strategy",
        **labels.swept_tip,
        workers="Workers",
        text=name,
        runs="Runs",
    )
    if any(column(records, "joined")):
        layers.append(drawn.transform_filter("datum.joined").mark_line(strokeWidth=2.5))
    if has_bars:
        # Where no row has several runs, nothing shows a spread.
        bars = drawn.transform_filter("isValid(datum.low)")
        rule = bars.mark_rule(strokeWidth=2)
        tick = bars.mark_tick(
            thickness=2,
            size=9,
            orient="horizontal",
        )
        layers.append(rule.encode(y="low:Q", y2="high:Q"))
        layers.append(tick.encode(y="low:Q"))
        layers.append(tick.encode(y="high:Q"))
    if any(column(records, "advised")):
        advised = drawn.transform_filter("datum.advised")
        layers.append(advised.mark_point(size=380, strokeWidth=2.5))
    points_drawn = drawn.mark_point(filled=True, size=80)
    layers.append(points_drawn.encode(shape=shape, tooltip=tips))
    if panels:
        for layer in layers:
            # With data of its own, a layer would show all of it in each panel.
            if layer.data is source:
                layer.data = alt.Undefined
        chart = alt.layer(*layers, data=source)
        chart = chart.properties(width=WIDTH // 2 - 40, height=LOW)
        facet = alt.Facet("variant:N", title=None, sort=list(panels))
        return chart.facet(facet=facet, columns=2)
    if guides:
        texts = []
        for text, (_, (_, level)) in guides:
            texts.append({"text": text, "value": level})
        mark = alt.Chart(data(texts)).mark_text(
            align="left",
            baseline="middle",
            dx=6,
        )
        layers.append(
            mark.encode(
                x=alt.value("width"),
                y=y,
                text="text:N",
            )
        )
    height = HEIGHT
    if len(counts) < LEAST_COUNTS:
        height = LOW + 20
    return alt.layer(*layers).properties(width=WIDTH, height=height)


def _place_points(
    records: figure_data.Records,
    counts: Sequence[int],
    shown: Sequence[str],
    has_bars: bool,
) -> None:
    """Give each record its place on the axis, apart from other series' bars, and whether a line joins it."""
    points: Counter[tuple[str, str]] = Counter()
    for record in records:
        points[record["strategy"], record["variant"]] += 1
    for record in records:
        shift, factor = 0.0, 1.0
        if has_bars:
            series = shown.index(record["series"])
            shift, factor = dodge(counts, series, len(shown))
        place = record["workers"] * factor + shift
        record["place"] = round(place, 4)
        of_series = points[record["strategy"], record["variant"]]
        record["joined"] = of_series >= LEAST_COUNTS
