"""The report's further sections: costs, samples, how times scale with the workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.scaling_model import TIMES, Model, Prediction
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.wording.costs import describe_unmeasured
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
    digits = 0
    if value < 0.1:
        digits = 1
    return format_number(100 * value, digits)


def _watt_hours(value: float) -> str:
    if value < 1:
        return units.format_scaled(1000 * value, "mWh")
    return units.format_scaled(value, "Wh")


def _cost_columns() -> tuple[CostColumn, ...]:
    """All quantities, in order."""
    return (
        CostColumn(
            Heading("Device time", "wall clock", "devices"),
            "device_hours",
            units.cost,
        ),
        CostColumn(
            Heading("Node time", "wall clock", "nodes"),
            "node_hours",
            units.cost,
        ),
        CostColumn(Heading("Energy", "training", "energy"), "watt_hours", _watt_hours),
        CostColumn(Heading("GPUs", "% busy", "GPU %"), "gpu_percent", _percent),
        CostColumn(Heading("CPUs", "% busy", "CPU %"), "cpu_percent", _percent),
        CostColumn(
            Heading("GPU memory", "peak", "GPU mem"),
            "gpu_memory_bytes",
            units.size,
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
    columns = _cost_columns()
    # Tables from elsewhere may know none.
    rows = [row for row in findings.rows if _is_known(row, columns)]
    used = []
    for column in columns:
        if any(_is_known(row, [column]) for row in rows):
            used.append(column)
    if not used:
        return None
    shown = {column.name for column in used}
    meanings = []
    for name, text in MEANINGS.items():
        if name in shown:
            meanings.append(text)
    items = Items((*meanings, *_unmeasured(rows)))
    return Section("What it cost", (_table(rows, used), items), "costs")


def _is_known(row: Row, columns: Sequence[CostColumn]) -> bool:
    return any(column.value(row) is not None for column in columns)


def _table(rows: Sequence[Row], columns: Sequence[CostColumn]) -> Table:
    names = swept_columns(rows)
    lines = []
    for row in rows:
        line = list(identity_cells(row, names))
        for column in columns:
            value = column.value(row)
            line.append("" if value is None else column.written(value))
        lines.append(tuple(line))
    headings = identity_headings(names)
    headings += [column.heading for column in columns]
    caption = "Per run, from start to result or during training"
    return Table(tuple(headings), tuple(lines), caption, essential=len(names) + 3)


def _unmeasured(rows: Sequence[Row]) -> list[str]:
    """Why quantities are missing, each reason once."""
    reasons: dict[str, None] = {}
    for row in rows:
        words = describe_unmeasured(row.costs.unmeasured) or ""
        # The words join the reasons of a row.
        reasons |= dict.fromkeys(words.split("; "))
    sentences = []
    for reason in reasons:
        name, _, why = reason.partition(": ")
        if name in WORDS:
            sentences.append(f"Unknown: {WORDS[name]}, since {why}.")
    return sentences


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
    texts = []
    for model in models:
        name = figure_data.series_name(model.series.key)
        sentences = [describe_fit(model, name), *model_sentences(model)]
        if not shared:
            sentences.append(f"This is {describe_work(model)}.")
        texts.append(" ".join(sentences))
    blocks: list[Block] = [Items(tuple(texts))]
    if shared:
        blocks.append(Paragraph(f"All are {works[0]}."))
    without = []
    for model in findings.models:
        if not model.fit:
            name = figure_data.series_name(model.series.key)
            without.append(f"{name}: {model.reason}.")
    if without:
        blocks.append(Paragraph(f"No scaling model for {' '.join(without)}"))
    # A terminal shows no figures, and the intervals of this one solve least squares hundreds of times.
    blocks += [
        Drawing(partial(time_figure, findings)),
        _predicted(models),
        Paragraph(INTERVALS),
    ]
    return Section("How the times scale", tuple(blocks), "models")


def shown_models(findings: Findings) -> list[Model]:
    """The series with a scaling model, at most `MOST_MODELS`, the recommended one first if there are more."""
    models = [model for model in findings.models if model.fit]
    choice = findings.advice.choice
    # The series that is advised is shown in any case, in its place if all are.
    if choice is None or len(models) <= MOST_MODELS:
        return models[:MOST_MODELS]
    recommended, others = [], []
    for model in models:
        if model.series.key.series == choice.key.series:
            recommended.append(model)
        else:
            others.append(model)
    return [*recommended, *others][:MOST_MODELS]


def _predicted(models: Sequence[Model]) -> Table:
    predicted, predictions = [], []
    for model in models:
        for count in model.counts():
            if count not in model.series.different:
                predicted.append(model)
                predictions.append(model.predict(count))
    unit, length, digits = _unit(predictions)
    rows = []
    for model, prediction in zip(predicted, predictions, strict=True):
        speedup = with_interval(prediction.speedup, 2)
        # A relative speed-up without its baseline would be read as one over one worker.
        if model.reference > 1:
            speedup += f", against {model.reference} workers"
        rows.append(
            (
                figure_data.series_name(model.series.key),
                str(prediction.workers),
                with_interval(prediction.seconds.scaled(1 / length), digits),
                speedup,
                with_interval(prediction.efficiency, 2),
            )
        )
    first = models[0].series
    time = Heading(TIMES[first.of], unit, f"time {unit}")
    largest = [model.counts()[-1] for model in models]
    most = max(largest)
    return Table(
        (STRATEGY, WORKERS, time, SPEEDUP, EFFICIENCY),
        tuple(rows),
        f"Predictions for up to {most} workers",
        name="predicted",
    )


def _unit(predictions: Sequence[Prediction]) -> tuple[str, float, int]:
    """Unit of times, its length in seconds, and the decimals to show."""
    values = [prediction.seconds.value or 0.0 for prediction in predictions]
    unit, length = time_unit(values)
    in_unit = [value / length for value in values]
    return unit, length, decimals(in_unit)


def time_figure(findings: Findings) -> Figure:
    """Training time, measured and predicted; needs at least one scaling model."""
    import altair as alt

    models = shown_models(findings)
    labels = figure_data.labels(findings)
    points, unit, length = _time_points(models, labels)
    ends = figure_data.values_and_ends(points)
    # Room for the marks at both ends: `nice` would go on to the next power of ten.
    low = min(ends) / 1.1
    high = max(ends) * 1.1
    of = TIMES[models[0].series.of]
    y = alt.Y(
        "value:Q",
        title=f"{of} ({unit})",
        # On two logarithmic axes, ideal scaling is a straight line.
        scale=alt.Scale(
            type="log",
            domain=[low, high],
            nice=False,
        ),
        axis=alt.Axis(values=figure_data.log_ticks(low, high), format="~g"),
    )
    names = labels.shown(points)
    colour, shape = colour_and_shape(names, labels.by_strategy, "")
    counts = set(figure_data.column(points, "workers"))
    x = workers_axis(sorted(counts))
    dashes = alt.StrokeDash(
        "part:N",
        # Without a legend, as the caption says what is dashed.
        scale=alt.Scale(domain=["within", "beyond"], range=[[1, 0], [3, 4]]),
        legend=None,
    )
    curves = data(_time_curves(models, labels, length))
    lines = alt.Chart(curves).mark_line(strokeWidth=2)
    layers: list[Any] = [lines.encode(x, y, colour, dashes, detail="line:N")]
    drawn = alt.Chart(data(points)).encode(x, y, colour)
    if figure_data.column(points, "low"):
        rule = drawn.mark_rule(strokeWidth=1.5)
        layers.append(rule.encode(y="low:Q", y2="high:Q"))
    ground = alt.condition("datum.kind == 'measured'", colour, alt.value("transparent"))
    tips = tooltip(
        strategy="Strategy",
        workers="Workers",
        kind="Is",
        text="Value",
    )
    marks = drawn.mark_point(size=80, strokeWidth=2)
    layers.append(
        marks.encode(
            shape=shape,
            fill=ground,
            tooltip=tips,
        )
    )
    caption = CAPTION
    fits = [model.fit for model in findings.models]
    count = len(fits) - fits.count(None)
    if count > MOST_MODELS:
        caption += f" Of {count} series, {MOST_MODELS} are drawn."
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    return figure("predicted-time", f"{of}, measured and predicted", chart, caption)


def _time_points(
    models: Sequence[Model], labels: figure_data.Labels
) -> tuple[figure_data.Records, str, float]:
    """Measured and predicted times, their unit and its length in seconds."""
    predicted, predictions = [], []
    for model in models:
        for count in model.counts():
            predicted.append(model)
            predictions.append(model.predict(count))
    unit, length, _ = _unit(predictions)
    points: figure_data.Records = []
    for model, prediction in zip(predicted, predictions, strict=True):
        seconds = prediction.seconds.scaled(1 / length)
        if seconds.value is None:
            continue
        kind = "measured" if prediction.measured else "predicted"
        fields: dict[str, Any] = {
            "workers": int(prediction.workers),
            "kind": kind,
        }
        fields |= labels.fields(model.series.key)
        points.append(fields | figure_data.ends(seconds))
    return points, unit, length


def _time_curves(
    models: Sequence[Model],
    labels: figure_data.Labels,
    length: float,
) -> figure_data.Records:
    """Points of the models' curves, within the measured numbers of workers and beyond."""
    curves: figure_data.Records = []
    for model in models:
        assert model.fit is not None
        measured = model.series.different
        last = model.counts()[-1]
        parts = {
            # Both hold the last measured number, so that the line has no gap.
            "within": _grid(measured[0], measured[-1]),
            "beyond": _grid(measured[-1], last),
        }
        named = labels.fields(model.series.key)
        for part, counts in parts.items():
            line = dict(named)
            line["part"] = part
            line["line"] = f"{model.series.key.label} {part}"
            for count in counts:
                value = model.fit.seconds(count) / length
                curves.append(line | {"workers": count, "value": value})
    return curves


def _grid(first: int, last: int) -> list[int]:
    """Numbers of workers along a curve, evenly by ratio: integers, since some terms are steps."""
    # Of few workers, several points round to one number.
    counts = set()
    for index in range(POINTS):
        share = index / (POINTS - 1)
        counts.add(round(first * (last / first) ** share))
    return sorted(counts)
