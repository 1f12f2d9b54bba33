"""An estimate as a page, and as a section of the report beside what was measured later."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, describe, key_of
from scalestudy.analysis.table import Row
from scalestudy.features.estimate.records import (
    EstimateRecord,
    PredictedPoint,
    PredictedRange,
    PredictedSeries,
    stored_estimate,
)
from scalestudy.report.axes import is_logarithmic
from scalestudy.report.axes import workers as workers_axis
from scalestudy.report.document import (
    Block,
    Document,
    Drawing,
    Folded,
    Heading,
    Items,
    Paragraph,
    Section,
    Table,
)
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure
from scalestudy.report.format import decimals, number, time_unit
from scalestudy.report.style import series_style

FORMS = ("table", "json", "markdown", "html")
BRIEF = {
    "computing": "contention", "fixed": "fixed cost", "input": "input", "exchange": "exchange",
    "slowest": "slowest worker", "uneven": "uneven slices",
}  # fmt: skip
"""What keeps from ideal scaling, by its part, in a word or two."""
RANGES = "Ranges hold 95 % of the draws under the stated assumptions; they are no confidence intervals."


def rendered(estimate: EstimateRecord, form: str, *, width: int = 120, colour: bool = False) -> str:
    """The text of an estimate.

    Args:
        estimate: What is expected.
        form: Of `FORMS`.
        width: Columns of a terminal, for "table".
        colour: Whether a terminal's colour codes may be in it.
    """
    if form == "json":
        return estimate.model_dump_json(indent=1) + "\n"
    if form == "html":
        from scalestudy.report.as_html import html

        return html(estimate_page(estimate))
    if form == "markdown":
        from scalestudy.report.as_markdown import markdown

        return markdown(estimate_page(estimate, drawn=False))
    from scalestudy.report.as_terminal import terminal

    return terminal(estimate_page(estimate, drawn=False), width, colour)


def estimate_page(estimate: EstimateRecord, *, drawn: bool = True) -> Document:
    """The whole page; `drawn`: with figures."""
    blocks: list[Block] = [Items(tuple(series.sentence for series in estimate.series))]
    if estimate.missing:
        blocks.append(Paragraph("Not predicted: " + "; ".join(estimate.missing) + "."))
    if drawn:
        blocks.append(Drawing(speedup_figure(estimate)))
    headings = tuple(Heading(name, numeric=False) for name in ("What", "Value", "From"))
    for series in estimate.series:
        assumed = Table(
            headings, tuple((each.name, each.value, each.because) for each in series.assumptions),
            caption="What the estimate rests on. Measured ranges hold 95 %; anything in others is as likely.",
        )  # fmt: skip
        table = predicted_table(series, estimate)
        blocks.append(Section(_title(series), (table, Folded("What it rests on", (assumed,)))))
    return Document(
        f"Expected scaling of {estimate.study}",
        tuple(blocks),
        subtitle=f"Estimated {made(estimate)}; {estimate.draws:,} draws. {RANGES}",
    )


def made(estimate: EstimateRecord) -> str:
    """When it was made, and what was known by then."""
    known = "before any run" if estimate.before else "after runs"
    when = estimate.made.replace("T", " ").removesuffix("+00:00")
    return f"{when} UTC, {known} with more than one worker had ended"


def _title(series: PredictedSeries) -> str:
    return f"{series.strategy} ({describe(series.swept)})" if series.swept else series.strategy


def predicted_table(series: PredictedSeries, estimate: EstimateRecord) -> Table:
    """A row for each number of workers."""
    points = series.points
    step, step_length = ("ms", 1e-3) if max(each.step_seconds.value for each in points) < 1 else ("s", 1.0)
    unit, length = time_unit([each.training_seconds.value for each in points])
    charges = [each.charge for each in points if each.charge is not None]
    columns: list[tuple[Heading, list[str]]] = [
        (Heading("Workers", brief="n"), [str(each.workers) for each in points]),
        (Heading("Training time", unit, f"time {unit}"),
         [_with_ends(each.training_seconds, length=length) for each in points]),
        (Heading("Speed-up", "training time", "S"), [_with_ends(each.speedup) for each in points]),
        (Heading("Efficiency", "training time", "E"),
         [_with_ends(each.efficiency, 2 if each.efficiency.value >= 0.1 else 3) for each in points]),
        (Heading("Worker-hours", brief="worker-h"), [_short(each.worker_hours.value) for each in points]),
        (Heading("Lost most to", brief="lost to", numeric=False),
         [BRIEF[each.dominant] if each.dominant else "–" for each in points]),
        (Heading("Nodes", brief="nodes"), [str(each.nodes) for each in points]),
        (Heading("Global batch", brief="batch"), [number(each.global_batch, 0) for each in points]),
        (Heading("Updates", brief="updates"), [number(each.updates, 0) for each in points]),
        (Heading("Step", step, f"step {step}"),
         [_short(each.step_seconds.value / step_length) for each in points]),
    ]  # fmt: skip
    if charges:
        heading = Heading("Charge", f"{estimate.charge:g} a node-hour", "charge")
        columns.insert(5, (heading, [_short(each.value) for each in charges]))
    rule = "every worker takes its own batch" if series.rule == "per-worker" else "the global batch stays"
    larger = [each.workers for each in points if each.global_batch > series.training_samples]
    return Table(
        tuple(heading for heading, _ in columns),
        tuple(zip(*(cells for _, cells in columns), strict=True)),
        caption=f"Expected of {_title(series)}: {rule}, all-reduce by {series.algorithm} "
        f"({series.collective}). Worker-hours are with start-up and evaluation.",
        footnotes=(
            f"From {larger[0]} workers on the global batch is larger than the training set of "
            f"{number(series.training_samples, 0)} samples: an epoch is one step, and workers stay idle.",
        ) if larger else (),
        name=f"expected-{series.strategy}",
    )  # fmt: skip


def _short(value: float) -> str:
    return number(value, decimals([value]))


def _with_ends(span: PredictedRange, digits: int | None = None, length: float = 1.0) -> str:
    digits = decimals([span.value / length]) if digits is None else digits
    value, low, high = (number(each / length, digits) for each in (span.value, span.low, span.high))
    return value if low == high else f"{value} ({low}–{high})"


@dataclass(frozen=True)
class ComparedRow:
    """A measured row beside its prediction.

    Attributes:
        key: The row.
        predicted: What was expected.
        seconds: Measured training time.
        speedup: Measured, from training times; where the study has no one-worker run, over the time that the
            estimate gives one worker. None where there is none.
    """

    key: Key
    predicted: PredictedPoint
    seconds: float
    speedup: float | None

    @property
    def error(self) -> float:
        """By which share the measured training time is longer than predicted."""
        return self.seconds / self.predicted.training_seconds.value - 1

    @property
    def inside(self) -> bool:
        """Whether the measured training time lies in the predicted range."""
        return self.predicted.training_seconds.holds(self.seconds)


def compare(estimate: EstimateRecord, rows: Sequence[Row]) -> list[ComparedRow]:
    """Rows of several workers that were predicted, in their order; none that shared cores."""
    predicted = {
        key_of(series.strategy, point.workers, series.swept): point
        for series in estimate.series
        for point in series.points
    }

    def speedup(row: Row, seconds: float) -> float | None:
        # Over one worker, as in the prediction; the study's own may be over more, or over none.
        if row.speed.baseline is not None and row.speed.against == 1:
            return row.speed.training.value
        one = predicted.get(row.key.with_(row.strategy, 1))
        return one.training_seconds.value / seconds if one else None

    return [
        ComparedRow(row.key, predicted[row.key], seconds, speedup(row, seconds))
        for row in rows
        if row.workers > 1 and row.key in predicted and not row.oversubscribed
        if (seconds := row.training_seconds.value)
    ]


def mean_factor(compared: Sequence[ComparedRow]) -> float:
    """Geometric mean of the factors by which measured times differ from predicted ones, either way.

    Args:
        compared: At least one.
    """
    return exp(fmean(abs(log(1 + each.error)) for each in compared))


def estimate_section(findings: Findings) -> Section | None:
    """The report's section on predictions; None where there is none."""
    estimate = stored_estimate(findings.folder).record if findings.folder else None
    return _section(estimate, findings.rows) if estimate else None


def _section(estimate: EstimateRecord, rows: Sequence[Row]) -> Section:
    compared = compare(estimate, rows)
    if compared:
        drawn = (
            [Drawing(speedup_figure(estimate, compared))] if any(each.speedup for each in compared) else []
        )
        text = f"Estimated {made(estimate)}. {verdict(compared)}"
        blocks: tuple[Block, ...] = (Paragraph(text), *drawn, _compared_table(compared))
        return Section("Predicted and measured", blocks, name="predicted")
    blocks = (
        Paragraph(f"Estimated {made(estimate)}. No run whose times count has measured it yet. {RANGES}"),
        Items(tuple(series.sentence for series in estimate.series)),
        Drawing(speedup_figure(estimate)),
    )
    return Section("Predicted", blocks, name="predicted")


def verdict(compared: Sequence[ComparedRow]) -> str:
    """How far off an estimate was, in a sentence or two."""
    inside = sum(each.inside for each in compared)
    worst = max(compared, key=lambda each: abs(each.error))
    error = f"{100 * abs(worst.error):.0f} % {'longer' if worst.error > 0 else 'shorter'} than predicted"
    if len(compared) == 1:
        lies = "lies" if worst.inside else "does not lie"
        return f"Training on {worst.key.label} took {error}; it {lies} in the predicted range."
    return (
        f"Training times were off by a factor of {mean_factor(compared):.2f} on average, at most on "
        f"{worst.key.label} ({error}); {inside} of {len(compared)} rows lie in the predicted range."
    )


def _compared_table(compared: Sequence[ComparedRow]) -> Table:
    unit, length = time_unit([each.seconds for each in compared])
    digits = decimals([each.seconds / length for each in compared])
    headings = (
        Heading("Strategy", brief="strategy", numeric=False), Heading("Workers", brief="n"),
        Heading("Predicted time", unit, f"predicted {unit}"), Heading("Range", unit, unit),
        Heading("Measured time", unit, f"measured {unit}"), Heading("Error", brief="error"),
        Heading("Predicted speed-up", brief="S predicted"), Heading("Measured speed-up", brief="S measured"),
    )  # fmt: skip
    rows = []
    for each in compared:
        time, speed = each.predicted.training_seconds, each.predicted.speedup
        rows.append((
            _label(each.key),
            str(each.key.workers), number(time.value / length, digits),
            f"{number(time.low / length, digits)}–{number(time.high / length, digits)}",
            number(each.seconds / length, digits) + ("" if each.inside else " *"),
            f"{100 * each.error:+.0f} %".replace("-", "−"), number(speed.value, 2), number(each.speedup, 2),
        ))  # fmt: skip
    note = "An asterisk marks times outside of the predicted range."
    return Table(
        headings, tuple(rows), name="predicted-and-measured",
        caption=f"Training times and speed-ups as predicted from one worker, and as measured. {RANGES}",
        footnotes=() if all(each.inside for each in compared) else (note,),
    )  # fmt: skip


def speedup_figure(estimate: EstimateRecord, compared: Sequence[ComparedRow] = ()) -> Figure:
    """Predicted speed-up against workers; with measured points, up to twice the most that were measured."""
    import altair as alt

    measured = [each.key.workers for each in compared]
    points = [
        (_title(series), point)
        for series in estimate.series
        for point in series.points
        if not measured or point.workers <= 2 * max(measured)
    ]
    records = [
        {"series": name, "workers": point.workers, "value": _round(point.speedup.value),
         "low": _round(point.speedup.low), "high": _round(point.speedup.high)}
        for name, point in points
    ]  # fmt: skip
    counts = sorted({point.workers for _, point in points})
    names = [_title(series) for series in estimate.series]
    swept = any(series.swept for series in estimate.series)
    strategies = [series.strategy for series in estimate.series]
    colours, shapes = series_style(strategies, names, by_strategy=not swept)
    x = workers_axis(counts)
    # Both or none, or the ideal would be no straight line.
    scale = alt.Scale(type="log", base=2) if is_logarithmic(counts) else alt.Scale(domainMin=0)
    axis = alt.Axis(tickCount=7, format="~g")
    y = alt.Y("value:Q", title="Speed-up S (training time)", scale=scale, axis=axis)
    colour = alt.Color("series:N", title="Strategy", scale=alt.Scale(domain=names, range=colours),
                       legend=alt.Legend(symbolOpacity=1))  # fmt: skip
    ideal = [{"workers": count, "value": count} for count in (counts[0], counts[-1])]
    drawn = alt.Chart(data(records)).encode(x, colour)
    tooltip = [
        alt.Tooltip("series:N", title="Strategy"), alt.Tooltip("workers:Q", title="Workers"),
        alt.Tooltip("value:Q", title="Predicted", format=".3~g"), alt.Tooltip("low:Q", format=".3~g"),
        alt.Tooltip("high:Q", format=".3~g"),
    ]  # fmt: skip
    layers: list[Any] = [
        alt.Chart(data(ideal)).mark_line(strokeDash=[5, 4], strokeWidth=1.5).encode(x, y),
        drawn.mark_area(opacity=0.16).encode(alt.Y("low:Q", title=None), alt.Y2("high:Q")),
        drawn.mark_line(strokeWidth=2.5, point=False).encode(y, tooltip=tooltip),
    ]
    caption = f"Lines are predicted medians, bands their ranges; the dashed line is ideal. {RANGES}"
    if not compared:
        chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
        return figure("predicted", "Predicted speed-up against workers", chart, caption)
    marks = [
        {"series": _label(each.key), "workers": each.key.workers, "value": _round(each.speedup)}
        for each in compared if each.speedup is not None
    ]  # fmt: skip
    shape = alt.Shape("series:N", title="Strategy", scale=alt.Scale(domain=names, range=shapes))
    layers.append(alt.Chart(data(marks)).mark_point(filled=True, size=90).encode(x, y, colour, shape))
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    caption = f"Points were measured. {caption}"
    return figure("predicted-and-measured", "Speed-up: predicted and measured", chart, caption)


def _label(key: Key) -> str:
    return f"{key.strategy} ({key.details})" if key.swept else key.strategy


def _round(value: float) -> float:
    return float(f"{value:.5g}")
