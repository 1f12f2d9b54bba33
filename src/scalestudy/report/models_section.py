"""The report's section on how times scale with the workers, with predictions for larger numbers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.scaling.model import Model, Prediction, karp_flatt
from scalestudy.analysis.scaling.series import TIMES
from scalestudy.analysis.scaling.words import describe_fit, describe_work, model_sentences
from scalestudy.report import series
from scalestudy.report.document import Block, Drawing, Folded, Heading, Items, Paragraph, Section, Table
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, colour_and_shape, data, figure, tooltip
from scalestudy.report.format import decimals, number, time_unit, with_interval
from scalestudy.report.series import workers

MOST_MODELS = 12
"""Largest number of series that are shown, including the recommended one."""
POINTS = 40
"""Points of a curve."""
INTERVALS = (
    "Predictions assume that times continue as measured. Their 95 % prediction intervals are for a single"
    " run and allow for every form of exchange that the runs do not rule out, but not for effects that only"
    " appear with more workers, or on more nodes, than were measured."
)
SHARES = (
    "The Karp–Flatt metric (1990) is the serial share of the work that alone would explain a speed-up. If it"
    " stays level, serial work is the limit; if it rises, something grows with the workers."
)
CAPTION = (
    "Filled points are measured, the line is the scaling model. The dashed line and open points are"
    " predictions, with bars that contain a run with a probability of 95 % if times continue as measured."
)
STRATEGY, WORKERS = Heading("Strategy", numeric=False), Heading("Workers", brief="n")
SPEEDUP, EFFICIENCY = Heading("Speed-up", brief="S"), Heading("Efficiency", brief="E")


def models_section(findings: Findings) -> Section | None:
    """Scaling models and predictions; None if no strategy has enough numbers of workers."""
    models = shown_models(findings)
    if not models:
        return None
    works = dict.fromkeys(describe_work(model) for model in models)
    alike = len(works) == 1
    blocks: list[Block] = [Paragraph(f"This is {next(iter(works))}.")] if alike else []
    blocks.append(Items(tuple(_words(model, alike) for model in models)))
    if more := sum(model.fit is not None for model in findings.models) - len(models):
        blocks.append(Paragraph(f"Scaling models of {more} more series are not shown here."))
    without = [
        f"{series.series_name(model.series.key)}: {model.reason}."
        for model in findings.models
        if not model.fit
    ]
    if without:
        left = len(without) - MOST_MODELS
        blocks.append(
            Paragraph(
                "No scaling model for "
                + " ".join(without[:MOST_MODELS])
                + f" And for {left} more." * (left > 0)
            )
        )
    blocks += [Drawing(partial(time_figure, findings)), _predicted(models), Paragraph(INTERVALS)]
    title = "Measured and modelled times, and the Karp–Flatt metric"
    blocks.append(Folded(title, (_every_count(models), Paragraph(SHARES))))
    return Section("How the times scale", tuple(blocks), "models")


def shown_models(findings: Findings) -> list[Model]:
    """The series with a scaling model, at most `MOST_MODELS`, the recommended one first if there are more."""
    models = [model for model in findings.models if model.fit]
    if len(models) > MOST_MODELS and (choice := findings.advice.choice):
        models.sort(key=lambda model: model.series.key.series != choice.key.series)
    return models[:MOST_MODELS]


def _words(model: Model, alike: bool) -> str:
    work = "" if alike else f"This is {describe_work(model)}."
    return " ".join(
        (describe_fit(model, series.series_name(model.series.key)), *model_sentences(model), work)
    ).rstrip()


def _predicted(models: Sequence[Model]) -> Table:
    predictions = [
        (model, prediction)
        for model in models
        for n in model.counts()
        if (prediction := model.predict(n)).kind == "extrapolated"
    ]
    unit, length, digits = _unit([prediction for _, prediction in predictions])
    rows = tuple(
        (
            series.series_name(model.series.key),
            str(prediction.workers),
            with_interval(prediction.seconds.scaled(1 / length), digits),
            with_interval(prediction.speedup, 2)
            + (f", against {model.reference} workers" if model.reference > 1 else ""),
            with_interval(prediction.efficiency, 2),
        )
        for model, prediction in predictions
    )
    time = Heading(TIMES[models[0].series.of], unit, f"time {unit}")
    most = max(model.counts()[-1] for model in models)
    return Table(
        (STRATEGY, WORKERS, time, SPEEDUP, EFFICIENCY),
        rows,
        f"Predictions for up to {most} workers",
        name="predicted",
    )


def _unit(predictions: Sequence[Prediction]) -> tuple[str, float, int]:
    """Unit of times, its length in seconds, and the decimals to show."""
    values = [prediction.seconds.value or 0.0 for prediction in predictions]
    unit, length = time_unit(values)
    return unit, length, decimals([value / length for value in values])


def _every_count(models: Sequence[Model]) -> Table:
    predictions = [(model, model.predict(count)) for model in models for count in model.series.different]
    unit, length, digits = _unit([prediction for _, prediction in predictions])
    rows = []
    for model, measured in predictions:
        fit = model.fit
        assert fit is not None
        off = 100 * fit.residuals[int(measured.workers)]
        share = karp_flatt(measured.speedup, measured.workers / model.reference)
        rows.append(
            (
                series.series_name(model.series.key),
                str(measured.workers),
                with_interval(measured.seconds.scaled(1 / length), digits),
                number(fit.seconds(measured.workers) / length, digits),
                ("+" if off > 0 else "") + number(off, 1),
                with_interval(share, 3) if share.value is not None else "",
            )
        )
    headings = (
        STRATEGY,
        WORKERS,
        Heading(TIMES[models[0].series.of], f"measured, {unit}", f"measured {unit}"),
        Heading("Model", unit, f"model {unit}"),
        Heading("Off by", "%"),
        Heading("Karp–Flatt", "serial share", "e"),
    )
    return Table(headings, tuple(rows), name="scaling")


def time_figure(findings: Findings) -> Figure:
    """Training time, measured and predicted; needs at least one scaling model."""
    import altair as alt

    models, labels = shown_models(findings), series.labels(findings)
    predictions = [(model, model.predict(count)) for model in models for count in model.counts()]
    unit, length, _ = _unit([prediction for _, prediction in predictions])
    curves: series.Records = []
    for model in models:
        assert model.fit is not None
        named = labels.fields(model.series.key)
        for part, counts in (("within", _grid(model, False)), ("beyond", _grid(model, True))):
            line = named | {"part": part, "line": f"{model.series.key.label} {part}"}
            curves += [line | {"workers": n, "value": model.fit.seconds(n) / length} for n in counts]
    points: series.Records = []
    for model, prediction in predictions:
        kind = "predicted" if prediction.kind == "extrapolated" else prediction.kind
        seconds = prediction.seconds.scaled(1 / length)
        fields: dict[str, Any] = {"workers": int(prediction.workers), "kind": kind}
        fields |= labels.fields(model.series.key)
        points += [fields | series.ends(seconds)] if seconds.value is not None else []
    ends = series.reach(points)
    of = TIMES[models[0].series.of]
    low, high = min(ends) / 1.1, max(ends) * 1.1
    ticks = [
        value for ten in range(-9, 9) for digit in (1, 2, 5) if low < (value := digit * 10.0**ten) < high
    ]
    y = alt.Y(
        "value:Q",
        title=f"{of} ({unit})",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=ticks, format="~g"),
    )
    colour, shape = colour_and_shape(labels.shown(points), labels.by_strategy, "")
    x = workers(sorted({point["workers"] for point in points}))
    dashes = alt.StrokeDash(
        "part:N", scale=alt.Scale(domain=["within", "beyond"], range=[[1, 0], [3, 4]]), legend=None
    )
    lines = alt.Chart(data(curves)).mark_line(strokeWidth=2)
    lines = lines.encode(x, y, colour, dashes, detail="line:N")
    drawn = alt.Chart(data(points)).encode(x, y, colour)
    bars = [drawn.mark_rule(strokeWidth=1.5).encode(y="low:Q", y2="high:Q")]
    ground = alt.condition("datum.kind == 'measured'", colour, alt.value("transparent"))
    tips = tooltip(strategy="Strategy", workers="Workers", kind="Is", text="Value")
    marks = drawn.mark_point(size=80, strokeWidth=2).encode(shape=shape, fill=ground, tooltip=tips)
    layers = [lines, *(bars if any("low" in point for point in points) else []), marks]
    count = sum(model.fit is not None for model in findings.models)
    left_out = f" Of {count} series, {MOST_MODELS} are drawn." if count > MOST_MODELS else ""
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return figure("predicted-time", f"{of}, measured and predicted", chart, CAPTION + left_out)


def _grid(model: Model, beyond: bool) -> list[int]:
    """Numbers of workers along a curve, measured or beyond: integers, since some terms are steps."""
    measured = model.series.different
    first, last = (measured[-1], model.counts()[-1]) if beyond else (measured[0], measured[-1])
    return sorted({round(first * (last / first) ** (index / (POINTS - 1))) for index in range(POINTS)})
