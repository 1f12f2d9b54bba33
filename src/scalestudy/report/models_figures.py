"""Figures of scaling models: measured and predicted time and efficiency against workers."""

from collections.abc import Callable
from math import floor, log10
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.scaling.model import Model, Prediction
from scalestudy.analysis.scaling.series import TIMES
from scalestudy.analysis.statistics import Estimate
from scalestudy.report import series
from scalestudy.report.axes import workers
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure
from scalestudy.report.format import time_unit
from scalestudy.report.style import series_style

if TYPE_CHECKING:
    import altair as alt

MOST_MODELS = 12
"""Series that are shown one by one: of more the advised one's and the first."""
POINTS = 40
"""Points of a curve."""
CAPTION = (
    "Filled points are measured, the line is the scaling model. Beyond the largest count measured it is"
    " dashed and points are open: predicted, with bars that hold a run with 95 % if times go on as measured."
)


def shown_models(findings: Findings) -> list[Model]:
    """Series with a scaling model, as many as can be told apart, in their order."""
    models = [model for model in findings.models if model.fit]
    choice = findings.advice.choice
    advised = (choice.strategy, choice.key.variant) if choice else None
    first = sorted(
        models, key=lambda model: (model.series.key.strategy, model.series.key.variant) != advised
    )[:MOST_MODELS]
    kept = {id(model) for model in first}
    return [model for model in models if id(model) in kept]


def time_figure(findings: Findings) -> Figure | None:
    """Training time, measured and predicted; None without a scaling model."""
    import altair as alt

    models = shown_models(findings)
    if not models:
        return None
    known = [model.predict(n).seconds for model in models for n in model.counts()]
    unit, length = time_unit([each.value or 0.0 for each in known])
    of = TIMES[models[0].series.of]
    ends = [end / length for each in known for end in (each.value, each.low, each.high) if end]
    y = alt.Y(
        "value:Q",
        title=f"{of} ({unit})",
        scale=alt.Scale(type="log", domain=[min(ends) / 1.1, max(ends) * 1.1], nice=False),
        axis=alt.Axis(values=_one_two_five(min(ends), max(ends)), format="~g"),
    )
    chart = _chart(findings, y, lambda prediction: prediction.seconds.scaled(1 / length))
    return chart and figure(
        "predicted-time", f"{of}, measured and predicted", chart, CAPTION + _left_out(findings)
    )


def efficiency_figure(findings: Findings) -> Figure | None:
    """Efficiency of training time, measured and predicted; None without a scaling model."""
    import altair as alt

    y = alt.Y(
        "value:Q",
        title="Efficiency",
        scale=alt.Scale(domainMin=0),
        axis=alt.Axis(tickCount=6),
    )
    chart = _chart(findings, y, lambda prediction: prediction.efficiency)
    if chart is None:
        return None
    level = [{"value": findings.target, "text": f"worth its cost: {findings.target:g}"}]
    rule = alt.Chart(data(level)).mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(y)
    return figure(
        "predicted-efficiency",
        "Efficiency, measured and predicted",
        alt.layer(rule, chart).properties(width=WIDTH, height=HEIGHT),
        CAPTION + " The dashed level line is the efficiency asked for." + _left_out(findings),
    )


def _left_out(findings: Findings) -> str:
    number = sum(model.fit is not None for model in findings.models)
    return f" Of {number} series, {MOST_MODELS} are drawn." if number > MOST_MODELS else ""


def _chart(findings: Findings, y: "alt.Y", shown: Callable[[Prediction], Estimate]) -> Any:
    import altair as alt

    models = shown_models(findings)
    if not models:
        return None
    labels = series.labels(findings)
    curves, points = [], []
    for model in models:
        fields = labels.fields(model.series.key)
        for part, counts in (("within", _grid(model, False)), ("beyond", _grid(model, True))):
            curves += [
                fields | {"part": part, "line": f"{model.series.key.label} {part}"}
                | {"workers": n, "value": shown(model.by_model(n)).value}
                for n in counts
            ]  # fmt: skip
        for n in model.counts():
            found = model.predict(n)
            kind = "predicted" if found.kind == "extrapolated" else found.kind
            points += _point(fields, n, shown(found), kind, model.series.counts.count(n) or None)
    drawn_counts = sorted({point["workers"] for point in points})
    names = [name for name in labels.names if any(point["series"] == name for point in points)]
    colours, shapes = series_style(names, names, labels.by_strategy)
    colour = alt.Color("series:N", title=None, scale=alt.Scale(domain=names, range=colours))
    shape = alt.Shape("series:N", title=None, scale=alt.Scale(domain=names, range=shapes))
    x = workers(drawn_counts)
    dashes = alt.Scale(domain=["within", "beyond"], range=[[1, 0], [3, 4]])
    line = (
        alt.Chart(data(curves))
        .mark_line(strokeWidth=2)
        .encode(x, y, colour, detail="line:N", strokeDash=alt.StrokeDash("part:N", scale=dashes, legend=None))
    )
    drawn = alt.Chart(data(points)).encode(x, y, colour)
    bars = drawn.mark_rule(strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    ground = alt.condition("datum.kind == 'measured'", colour, alt.value("transparent"))
    tips = [
        alt.Tooltip("strategy:N", title="Strategy"),
        alt.Tooltip("workers:Q", title="Workers"),
        alt.Tooltip("kind:N", title="Is"),
        alt.Tooltip("text:N", title="Value"),
    ]
    marks = drawn.mark_point(size=80, strokeWidth=2).encode(shape=shape, fill=ground, tooltip=tips)
    return alt.layer(line, bars, marks).properties(width=WIDTH, height=HEIGHT)


def _one_two_five(low: float, high: float) -> list[float]:
    """Round numbers on a logarithmic axis."""
    tens = range(floor(log10(low)), floor(log10(high)) + 1)
    return [digit * 10.0**ten for ten in tens for digit in (1, 2, 5)]


def _point(
    fields: dict[str, str], workers: float, found: Estimate, kind: str, runs: int | None
) -> series.Records:
    if found.value is None:
        return []
    record: dict[str, Any] = fields | {"workers": workers, "value": found.value, "kind": kind, "runs": runs}
    record["text"] = f"{found.value:.4g}"
    if found.low is not None and found.high is not None:
        record |= {"low": found.low, "high": found.high}
        record["text"] += f" (95 %: {found.low:.4g} to {found.high:.4g})"
    return [record]


def _grid(model: Model, beyond: bool) -> list[int]:
    """Counts that a line is drawn through, within what was measured or beyond: whole, since terms step."""
    measured = model.series.different
    first, last = (measured[-1], model.counts()[-1]) if beyond else (measured[0], measured[-1])
    return sorted({round(first * (last / first) ** (index / (POINTS - 1))) for index in range(POINTS)})
