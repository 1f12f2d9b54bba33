"""Figures of an estimate: speed-up as foreseen with its interval, and what was measured beside it."""

from collections.abc import Sequence
from typing import Any

from scalestudy.features.estimate.against import Held
from scalestudy.analysis.runs import describe
from scalestudy.report.axes import is_logarithmic, workers
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure
from scalestudy.report.style import series_style
from scalestudy.features.estimate.records import EstimateRecord


def foreseen(estimate: EstimateRecord) -> Figure:
    """Speed-up foreseen for each strategy, against workers."""
    caption = "Lines are medians of what is expected, bands hold 95 % of the draws; the dashed line is ideal."
    return _drawn("foreseen", "Expected speed-up against workers", estimate, (), caption)


def foreseen_and_measured(estimate: EstimateRecord, held: Sequence[Held]) -> Figure:
    """The same with measured points, up to twice the most workers that were measured."""
    most = max(each.key.workers for each in held)
    caption = (
        "Lines and bands are what was foreseen, with its 95 % interval; points were measured. The dashed line"
        " is ideal."
    )
    title = "Speed-up: foreseen and measured"
    return _drawn("foreseen-and-measured", title, estimate, held, caption, 2 * most)


def _drawn(
    name: str,
    title: str,
    estimate: EstimateRecord,
    held: Sequence[Held],
    caption: str,
    most: int | None = None,
) -> Figure:
    import altair as alt

    records = [
        {
            "series": _label(series.strategy, series.swept), "workers": point.workers,
            "value": _round(point.speedup.value), "low": _round(point.speedup.low),
            "high": _round(point.speedup.high),
        }
        for series in estimate.series
        for point in series.points
        if most is None or point.workers <= most
    ]  # fmt: skip
    counts = sorted({int(str(record["workers"])) for record in records})
    names = list(dict.fromkeys(str(record["series"]) for record in records))
    colours, shapes = series_style(
        [series.strategy for series in estimate.series], names, by_strategy=not _swept(estimate)
    )
    x = workers(counts)
    # Both or none, or the ideal would be no straight line.
    scale = alt.Scale(type="log", base=2) if is_logarithmic(counts) else alt.Scale(domainMin=0)
    axis = alt.Axis(tickCount=7, format="~g")
    y = alt.Y("value:Q", title="Speed-up S (training time)", scale=scale, axis=axis)
    colour = alt.Color("series:N", title="Strategy", scale=alt.Scale(domain=names, range=colours),
                       legend=alt.Legend(symbolOpacity=1))  # fmt: skip
    ideal = [{"workers": count, "value": count} for count in (counts[0], counts[-1])]
    line = alt.Chart(data(ideal)).mark_line(strokeDash=[5, 4], strokeWidth=1.5).encode(x, y)
    drawn = alt.Chart(data(records)).encode(x, colour)
    tooltip = [
        alt.Tooltip("series:N", title="Strategy"), alt.Tooltip("workers:Q", title="Workers"),
        alt.Tooltip("value:Q", title="Foreseen", format=".3~g"), alt.Tooltip("low:Q", format=".3~g"),
        alt.Tooltip("high:Q", format=".3~g"),
    ]  # fmt: skip
    band = drawn.mark_area(opacity=0.16).encode(alt.Y("low:Q", title=None), alt.Y2("high:Q"))
    middle = drawn.mark_line(strokeWidth=2.5, point=False).encode(y, tooltip=tooltip)
    layers: list[Any] = [line, band, middle]
    if held:
        points = [
            {"series": _label(each.key.strategy, each.key.swept), "workers": each.key.workers,
             "value": _round(each.speedup)}
            for each in held if each.speedup is not None
        ]  # fmt: skip
        shape = alt.Shape("series:N", title="Strategy", scale=alt.Scale(domain=names, range=shapes))
        layers.append(alt.Chart(data(points)).mark_point(filled=True, size=90).encode(x, y, colour, shape))
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return figure(name, title, chart, caption)


def _label(strategy: str, swept: dict[str, Any]) -> str:
    return f"{strategy} ({describe(swept)})" if swept else strategy


def _swept(estimate: EstimateRecord) -> bool:
    return any(series.swept for series in estimate.series)


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")
