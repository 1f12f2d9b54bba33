"""The report's section on how times scale with the workers, and what is predicted of larger counts."""

from collections.abc import Callable
from functools import partial

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling.model import Model, Prediction, karp_flatt
from scalestudy.analysis.scaling.series import TIMES
from scalestudy.analysis.scaling.words import fit_words, model_sentences, work_words
from scalestudy.report.document import Block, Drawing, Folded, Heading, Items, Paragraph, Section, Table
from scalestudy.report.figure import Figure
from scalestudy.report.format import decimals, number, time_unit, with_interval
from scalestudy.report.models_figures import MOST_MODELS, efficiency_figure, shown_models, time_figure

INTERVALS = (
    "Predicted values hold if times go on as they were measured. Their 95 % prediction intervals are of one"
    " run, and allow for every form of exchange that the runs do not rule out; nothing in them allows for"
    " what only shows at larger counts."
)
SHARES = (
    "Karp and Flatt's metric (1990) is the serial share that the one speed-up would come from: level, time is"
    " lost to serial work; rising, to what grows with the workers."
)


def models_section(findings: Findings) -> Section | None:
    """Scaling models, predictions and scaling by node; None where no strategy has enough counts."""
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
        blocks.append(Paragraph(f"Scaling models of {more} more series are not shown here."))
    without = [
        f"{series_name(model.series.key)}: {model.reason}." for model in findings.models if not model.fit
    ]
    if without:
        blocks.append(Paragraph("No scaling model of " + " ".join(_few(without))))
    blocks += [Drawing(partial(_drawn, draw, findings)) for draw in (time_figure, efficiency_figure)]
    blocks += [
        _predicted(models),
        Paragraph(INTERVALS + _beyond_nodes(models)),
        *_by_node(models),
    ]
    blocks.append(
        Folded(
            "Every count: measured, by the scaling model, and Karp–Flatt",
            (_every_count(models), Paragraph(SHARES)),
        )
    )
    return Section("How the times scale", tuple(blocks), "models")


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
    work = "" if alike else f"This is {work_words(model)}."
    return " ".join((fit_words(model, series_name(model.series.key)), *model_sentences(model), work)).rstrip()


def _beyond_nodes(models: list[Model]) -> str:
    """What no prediction knows of: more nodes than were measured."""
    largest = [
        (model.nodes_measured * model.workers_per_node, model.nodes_measured)
        for model in models
        if model.nodes_measured and model.workers_per_node
    ]
    if not largest or min(largest)[0] >= max(model.counts()[-1] for model in models):
        return ""
    workers, nodes = min(largest)
    return (
        f" More than {workers} workers may need more than the {nodes} {'node' if nodes == 1 else 'nodes'}"
        " measured: what that costs is not in them."
    )


def _predicted(models: list[Model]) -> Table:
    found = [
        (model, prediction)
        for model in models
        for n in model.counts()
        if (prediction := model.predict(n)).kind == "extrapolated"
    ]
    unit, length, digits = _unit([prediction for _, prediction in found])
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


def _unit(found: list[Prediction]) -> tuple[str, float, int]:
    """Unit of times, its seconds, and how many decimals these take."""
    values = [prediction.seconds.value or 0.0 for prediction in found]
    unit, length = time_unit(values)
    return unit, length, decimals([value / length for value in values])


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
        for row in model.by_node
    )
    if not rows:
        return []
    headings = (
        Heading("Strategy", numeric=False),
        Heading("Nodes"),
        Heading("Workers", brief="n"),
        Heading("Speed-up", "of that time", "S"),
        Heading("Efficiency", "of that time", "E"),
    )
    return [Table(headings, rows, "By node: against one full node", name="by-node")]


def _every_count(models: list[Model]) -> Table:
    found = [(model, model.predict(count)) for model in models for count in model.series.different]
    unit, length, digits = _unit([prediction for _, prediction in found])
    headings = (
        Heading("Strategy", numeric=False),
        Heading("Workers", brief="n"),
        Heading(TIMES[models[0].series.of], f"measured, {unit}", f"measured {unit}"),
        Heading("By the model", unit, f"model {unit}"),
        Heading("Off", "%"),
        Heading("Karp–Flatt", "serial share", "e"),
    )
    rows = tuple(_count(model, prediction, length, digits) for model, prediction in found)
    return Table(headings, rows, name="scaling")


def _count(model: Model, measured: Prediction, length: float, digits: int) -> tuple[str, ...]:
    fit = model.fit
    assert fit is not None
    off = 100 * fit.residuals[int(measured.workers)]
    share = karp_flatt(measured.speedup, measured.workers / model.reference)
    return (
        series_name(model.series.key),
        str(measured.workers),
        with_interval(measured.seconds.scaled(1 / length), digits),
        number(fit.seconds(measured.workers) / length, digits),
        ("+" if off > 0 else "") + number(off, 1),
        with_interval(share, 3) if share.value is not None else "",
    )
