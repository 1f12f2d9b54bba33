"""The report's section on what times follow as workers grow, and what is predicted of larger counts."""

from collections.abc import Callable
from functools import partial

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling.karp_flatt import karp_flatt
from scalestudy.analysis.scaling.model import Model
from scalestudy.analysis.scaling.series import TIMES
from scalestudy.analysis.scaling.words import chosen_words, work_words
from scalestudy.analysis.table import Row
from scalestudy.report.document import Block, Drawing, Folded, Heading, Items, Paragraph, Section, Table
from scalestudy.report.figure import Figure
from scalestudy.report.format import decimals, number, time_unit, with_interval
from scalestudy.report.models_figures import MOST_MODELS, efficiency_figure, shown_models, time_figure

INTERVALS = (
    "Predicted values hold if the law goes on as it was measured. Their 95 % prediction intervals are of a"
    " run yet to be made (delta method on logarithms, Student's t); nothing in them allows for what only"
    " shows at larger counts."
)
SHARES = (
    "Karp and Flatt's metric (1990) is the serial share that the one speed-up would come from: level, time is"
    " lost to serial work; rising, to what grows with the workers."
)


def models_section(findings: Findings) -> Section | None:
    """Laws, predictions and scaling by node; None where no strategy has enough counts for a law."""
    models = shown_models(findings)
    if not models:
        return None
    works = dict.fromkeys(work_words(model) for model in models)
    alike = len(works) == 1
    words: Block = Items(tuple(_words(model, alike) for model in models))
    blocks = [words]
    if alike:
        blocks.insert(0, Paragraph(f"This is {next(iter(works))}."))
    if more := sum(model.fit is not None for model in findings.models) - len(models):
        blocks.append(Paragraph(f"Laws of {more} more series are not shown here."))
    without = [
        f"{series_name(model.series.key)}: {model.reason}." for model in findings.models if not model.fit
    ]
    if without:
        blocks.append(Paragraph("No law of " + " ".join(_few(without))))
    blocks += [Drawing(partial(_drawn, draw, findings)) for draw in (time_figure, efficiency_figure)]
    blocks += [_predicted(findings, models), Paragraph(INTERVALS), *_by_node(models)]
    blocks.append(
        Folded(
            "Every count: measured, by the law, and Karp–Flatt",
            (_every_count(findings, models), Paragraph(SHARES)),
        )
    )
    return Section("What the times follow", tuple(blocks), "models")


def _drawn(draw: Callable[[Findings], Figure | None], findings: Findings) -> Figure:
    found = draw(findings)
    assert found is not None  # there are models
    return found


def _few(sentences: list[str]) -> list[str]:
    more = len(sentences) - MOST_MODELS
    return sentences if more <= 0 else [*sentences[:MOST_MODELS], f"And of {more} more."]


def series_name(key: Key) -> str:
    """Strategy, and the other swept values where there are any."""
    return f"{key.strategy} ({key.details})" if key.swept else key.strategy


def _words(model: Model, alike: bool) -> str:
    assert model.choice is not None
    text = chosen_words(model, model.choice, series_name(model.series.key))
    text += "" if alike else f" This is {work_words(model)}."
    return f"{text} {model.second_node.sentence}" if model.second_node else text


def _predicted(findings: Findings, models: list[Model]) -> Table:
    found = [(model, prediction) for model in models for n in model.counts()
             if (prediction := model.predict(n)).beyond]  # fmt: skip
    unit, length = time_unit([prediction.seconds.value or 0.0 for _, prediction in found])
    digits = decimals([(prediction.seconds.value or 0.0) / length for _, prediction in found])
    rows = tuple(
        (
            series_name(model.series.key),
            str(prediction.workers),
            with_interval(prediction.seconds.scaled(1 / length), digits),
            with_interval(prediction.speedup, 2) + _against(model),
            with_interval(prediction.efficiency, 2),
            "predicted",
        )
        for model, prediction in found
    )
    headings = (
        Heading("Strategy", numeric=False),
        Heading("Workers", brief="n"),
        Heading(TIMES[models[0].series.of], unit, f"time {unit}"),
        Heading("Speed-up", "of that time", "S"),
        Heading("Efficiency", "of that time", "E"),
        Heading("Value", numeric=False),
    )
    caption = (
        f"Predicted beyond what was measured, up to {max(model.counts()[-1] for model in models)} workers"
    )
    return Table(headings, rows, caption, name="predicted")


def _against(model: Model) -> str:
    return f", against {model.reference} workers" if model.reference > 1 else ""


def _by_node(models: list[Model]) -> list[Block]:
    rows = tuple(
        (
            series_name(model.series.key),
            str(row.nodes),
            str(row.workers),
            with_interval(row.speedup, 2),
            with_interval(row.efficiency, 2),
        )
        for model in models
        for row in model.nodes
    )
    if not rows:
        return []
    headings = (
        Heading("Strategy", numeric=False),
        Heading("Nodes"),
        Heading("Workers", brief="n"),
        Heading("Speed-up", "throughput", "S"),
        Heading("Efficiency", "throughput", "E"),
    )
    return [Table(headings, rows, "By node: against one full node", name="by-node")]


def _every_count(findings: Findings, models: list[Model]) -> Table:
    by_series = {(model.series.key.strategy, model.series.key.variant): model for model in models}
    members = [
        (row, model)
        for row in findings.rows
        if (model := by_series.get((row.strategy, row.key.variant))) and row.workers in model.series.different
    ]
    times = [model.measured(row.workers, row.training_seconds).value or 0.0 for row, model in members]
    unit, length = time_unit(times)
    digits = decimals([time / length for time in times])
    rows = tuple(_count(row, model, length, digits) for row, model in members)
    headings = (
        Heading("Strategy", numeric=False),
        Heading("Workers", brief="n"),
        Heading(TIMES[models[0].series.of], f"measured, {unit}", f"measured {unit}"),
        Heading("By the law", unit, f"law {unit}"),
        Heading("Off", "%"),
        Heading("Karp–Flatt", "serial share", "e"),
    )
    return Table(headings, rows, name="laws")


def _count(row: Row, model: Model, length: float, digits: int) -> tuple[str, ...]:
    fit = model.fit
    assert fit is not None
    off = 100 * fit.residuals[row.workers]
    share = karp_flatt(row.speed.steady, row.workers / row.speed.against)
    return (
        series_name(row.key),
        str(row.workers),
        with_interval(model.measured(row.workers, row.training_seconds).scaled(1 / length), digits),
        number(fit.seconds(row.workers) / length, digits),
        ("+" if off > 0 else "") + number(off, 1),
        with_interval(share, 3) if share.value is not None else "",
    )
