"""The report's further sections: costs, samples, how times scale with the workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.scaling_model import TIMES, Model, Prediction
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.wording.larger_batch import samples_needed
from scalestudy.analysis.wording.scaling_model import (
    describe_fit,
    describe_work,
    model_sentences,
)
from scalestudy.report import figure_data
from scalestudy.report.document import (
    Block,
    Drawing,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
)
from scalestudy.report.figure import (
    HEIGHT,
    WIDTH,
    Figure,
    colour_and_shape,
    data,
    figure,
    tooltip,
)
from scalestudy.report.figure_data import workers_axis
from scalestudy.report.number_format import (
    decimals,
    format_number,
    time_unit,
    with_interval,
)
from scalestudy.report.results import identity_cells, identity_headings, swept_columns
from scalestudy.util import units

MEANINGS = {
    "device_hours": "Device and node time last from the start of the processes to the result, as sites"
    " charge them. Training time is shorter: a column of its own in the results.",
    "watt_hours": "Energy is that of the GPUs during training, without the rest of the node.",
    "flops_per_sample": "FLOP are those of matrix products and convolutions in the graph of the training"
    " step, forward and backward.",
    "mfu": "MFU is the FLOP/s reached in the steady epochs, divided by the peak of all devices (dense, as"
    " stated by the manufacturer).",
}
"""Meaning of each column, printed below the table if the table has the column."""
WORDS = {
    "energy": "energy",
    "gpu_joules": "the GPUs' energy",
    "flops_per_sample": "FLOP",
    "mfu": "MFU",
}
"""Names of columns in text."""
MEANING = (
    "Useful speed-up U(n) = S(n)/r(n) is what remains of the speed-up S(n) if n workers need r(n) times the"
    " samples for the same quality (Shallue et al., JMLR 2019). Samples are interpolated between evaluations"
    " and compared by seed. Synchronous strategies make the same updates, so one series of trainings, also of"
    " `virtual` workers, gives r(n) for all of them."
)
MOST_MODELS = 12
"""Largest number of series that are shown, including the recommended one."""
POINTS = 40
"""Points of a curve."""
INTERVALS = (
    "Predictions assume that times continue as measured. Their 95 % prediction intervals are for a single"
    " run and allow for every form of exchange that the runs do not rule out, but not for effects that only"
    " appear with more workers, or on more nodes, than were measured."
)
CAPTION = (
    "Filled points are measured, the line is the scaling model. The dashed line and open points are"
    " predictions, with bars that contain a run with a probability of 95 % if times continue as measured."
)
STRATEGY, WORKERS = Heading("Strategy", numeric=False), Heading("Workers", brief="n")
SPEEDUP, EFFICIENCY = Heading("Speed-up", brief="S"), Heading("Efficiency", brief="E")


@dataclass(frozen=True)
class CostColumn:
    """A quantity: its heading, its column in the table, and its format."""

    heading: Heading
    name: str
    written: Callable[[float], str]

    def value(self, row: Row) -> float | None:
        """The quantity for a row; None if unknown."""
        value: float | None = getattr(row.costs, self.name)
        return value


def _percent(value: float) -> str:
    return format_number(value, 0)


def _share(value: float) -> str:
    return format_number(100 * value, 1 if value < 0.1 else 0)


def _watt_hours(value: float) -> str:
    return (
        units.format_scaled(value, "Wh")
        if value >= 1
        else units.format_scaled(1000 * value, "mWh")
    )


COSTS = (
    CostColumn(
        Heading("Device time", "wall clock", "devices"), "device_hours", units.cost
    ),
    CostColumn(Heading("Node time", "wall clock", "nodes"), "node_hours", units.cost),
    CostColumn(Heading("Energy", "training", "energy"), "watt_hours", _watt_hours),
    CostColumn(Heading("GPUs", "% busy", "GPU %"), "gpu_percent", _percent),
    CostColumn(Heading("CPUs", "% busy", "CPU %"), "cpu_percent", _percent),
    CostColumn(
        Heading("GPU memory", "peak", "GPU mem"), "gpu_memory_bytes", units.size
    ),
    CostColumn(
        Heading("Host memory", "peak of a process", "memory"),
        "peak_memory_bytes",
        units.size,
    ),
    CostColumn(
        Heading("FLOP", "per sample", "FLOP"),
        "flops_per_sample",
        lambda v: units.format_scaled(v, "FLOP"),
    ),
    CostColumn(
        Heading("FLOP/s", "reached", "FLOP/s"),
        "flops_per_second",
        lambda v: units.format_scaled(v, "FLOP/s"),
    ),
    CostColumn(Heading("MFU", "% of peak", "MFU %"), "mfu", _share),
)


def costs_section(findings: Findings) -> Section | None:
    """A table of the known quantities; None if there are none."""
    rows = [
        row
        for row in findings.rows
        if any(column.value(row) is not None for column in COSTS)
    ]
    used = [
        column for column in COSTS if any(column.value(row) is not None for row in rows)
    ]
    if not used:
        return None
    shown = {column.name for column in used}
    meanings = [text for name, text in MEANINGS.items() if name in shown]
    return Section(
        "What it cost",
        (_table(rows, used), Items((*meanings, *_unmeasured(rows)))),
        "costs",
    )


def _table(rows: Sequence[Row], columns: Sequence[CostColumn]) -> Table:
    names = swept_columns(rows)

    def written(row: Row, column: CostColumn) -> str:
        value = column.value(row)
        return "" if value is None else column.written(value)

    lines = [
        (*identity_cells(row, names), *(written(row, column) for column in columns))
        for row in rows
    ]
    headings = (*identity_headings(names), *(column.heading for column in columns))
    caption = "Per run, from start to result or during training"
    return Table(headings, tuple(lines), caption, essential=len(names) + 3)


def _unmeasured(rows: Sequence[Row]) -> list[str]:
    reasons = [
        reason
        for row in rows
        for reason in (row.costs.unmeasured or "").split("; ")
        if reason
    ]
    parts = [reason.partition(": ") for reason in dict.fromkeys(reasons)]
    return [
        f"Unknown: {WORDS[name]}, since {why}."
        for name, _, why in parts
        if name in WORDS
    ]


def samples_section(findings: Findings) -> Section | None:
    """Samples to the target quality and the critical batch; None if the global batch does not grow."""
    sentences = samples_needed(findings.rows)
    if not sentences:
        return None
    return Section(
        "What the larger batch costs",
        (Items(tuple(sentences)), Paragraph(MEANING)),
        "samples",
    )


def models_section(findings: Findings) -> Section | None:
    """Scaling models and predictions; None if no strategy has enough numbers of workers."""
    models = shown_models(findings)
    if not models:
        return None
    works = list(dict.fromkeys(map(describe_work, models)))
    # Said once for all models, which a sweep has many of.
    shared = len(works) == 1 and len(models) > 1
    words = []
    for model in models:
        name = figure_data.series_name(model.series.key)
        sentences = [describe_fit(model, name), *model_sentences(model)]
        if not shared:
            sentences.append(f"This is {describe_work(model)}.")
        words.append(" ".join(sentences))
    blocks: list[Block] = [Items(tuple(words))]
    if shared:
        blocks.append(Paragraph(f"All are {works[0]}."))
    if without := [model for model in findings.models if not model.fit]:
        names = (
            f"{figure_data.series_name(model.series.key)}: {model.reason}."
            for model in without
        )
        blocks.append(Paragraph(f"No scaling model for {' '.join(names)}"))
    blocks += [
        Drawing(partial(time_figure, findings)),
        _predicted(models),
        Paragraph(INTERVALS),
    ]
    return Section("How the times scale", tuple(blocks), "models")


def shown_models(findings: Findings) -> list[Model]:
    """The series with a scaling model, at most `MOST_MODELS`, the recommended one first if there are more."""
    models = [model for model in findings.models if model.fit]
    if len(models) > MOST_MODELS and (choice := findings.advice.choice):
        models.sort(key=lambda model: model.series.key.series != choice.key.series)
    return models[:MOST_MODELS]


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
            figure_data.series_name(model.series.key),
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


def time_figure(findings: Findings) -> Figure:
    """Training time, measured and predicted; needs at least one scaling model."""
    import altair as alt

    models, labels = shown_models(findings), figure_data.labels(findings)
    predictions = [
        (model, model.predict(count)) for model in models for count in model.counts()
    ]
    unit, length, _ = _unit([prediction for _, prediction in predictions])
    curves: figure_data.Records = []
    for model in models:
        assert model.fit is not None
        named = labels.fields(model.series.key)
        for part, counts in (
            ("within", _grid(model, False)),
            ("beyond", _grid(model, True)),
        ):
            line = named | {"part": part, "line": f"{model.series.key.label} {part}"}
            curves += [
                line | {"workers": n, "value": model.fit.seconds(n) / length}
                for n in counts
            ]
    points: figure_data.Records = []
    for model, prediction in predictions:
        kind = "predicted" if prediction.kind == "extrapolated" else prediction.kind
        seconds = prediction.seconds.scaled(1 / length)
        fields: dict[str, Any] = {"workers": int(prediction.workers), "kind": kind}
        fields |= labels.fields(model.series.key)
        points += (
            [fields | figure_data.ends(seconds)] if seconds.value is not None else []
        )
    ends = figure_data.values_and_ends(points)
    of = TIMES[models[0].series.of]
    low, high = min(ends) / 1.1, max(ends) * 1.1
    y = alt.Y(
        "value:Q",
        title=f"{of} ({unit})",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=figure_data.log_ticks(low, high), format="~g"),
    )
    colour, shape = colour_and_shape(labels.shown(points), labels.by_strategy, "")
    x = workers_axis(sorted({point["workers"] for point in points}))
    dashes = alt.StrokeDash(
        "part:N",
        scale=alt.Scale(domain=["within", "beyond"], range=[[1, 0], [3, 4]]),
        legend=None,
    )
    lines = alt.Chart(data(curves)).mark_line(strokeWidth=2)
    lines = lines.encode(x, y, colour, dashes, detail="line:N")
    drawn = alt.Chart(data(points)).encode(x, y, colour)
    bars = [drawn.mark_rule(strokeWidth=1.5).encode(y="low:Q", y2="high:Q")]
    ground = alt.condition("datum.kind == 'measured'", colour, alt.value("transparent"))
    tips = tooltip(strategy="Strategy", workers="Workers", kind="Is", text="Value")
    marks = drawn.mark_point(size=80, strokeWidth=2).encode(
        shape=shape, fill=ground, tooltip=tips
    )
    layers = [lines, *(bars if any("low" in point for point in points) else []), marks]
    count = sum(model.fit is not None for model in findings.models)
    left_out = (
        f" Of {count} series, {MOST_MODELS} are drawn." if count > MOST_MODELS else ""
    )
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return figure(
        "predicted-time", f"{of}, measured and predicted", chart, CAPTION + left_out
    )


def _grid(model: Model, beyond: bool) -> list[int]:
    """Numbers of workers along a curve, measured or beyond: integers, since some terms are steps."""
    measured = model.series.different
    first, last = (
        (measured[-1], model.counts()[-1]) if beyond else (measured[0], measured[-1])
    )
    return sorted(
        {
            round(first * (last / first) ** (index / (POINTS - 1)))
            for index in range(POINTS)
        }
    )
