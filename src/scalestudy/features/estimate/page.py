"""An estimate as a page: what is expected of each strategy, and what that rests on."""

from collections.abc import Iterator, Sequence

from scalestudy.features.estimate.words import BRIEF
from scalestudy.analysis.runs import describe
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
from scalestudy.features.estimate.figures import foreseen
from scalestudy.report.format import decimals, number, time_unit
from scalestudy.features.estimate.records import EstimateRecord, ForeseenSeries, Interval


def estimate_page(estimate: EstimateRecord, *, drawn: bool = True) -> Document:
    """The whole page; `drawn`: with figures."""
    when = made(estimate)
    return Document(
        f"Expected scaling of {estimate.study}",
        (*_summary(estimate, drawn=drawn), *(_section(each, estimate) for each in estimate.series)),
        subtitle=f"Estimated {when}; 95 % intervals of {estimate.draws:,} draws",
    )


def made(estimate: EstimateRecord) -> str:
    """When, and what was known by then."""
    known = (
        "before any run with more than one worker"
        if estimate.before
        else "after runs with more than one worker had ended"
    )
    return f"{estimate.made.replace('T', ' ').removesuffix('+00:00')} UTC, {known}"


def title(series: ForeseenSeries) -> str:
    """Name of a strategy, with what else was swept."""
    return f"{series.strategy} ({describe(series.swept)})" if series.swept else series.strategy


def _summary(estimate: EstimateRecord, *, drawn: bool) -> Iterator[Block]:
    yield Items(tuple(each.sentence for each in estimate.series))
    if estimate.missing:
        yield Paragraph("Not foreseen: " + "; ".join(estimate.missing) + ".")
    if drawn:
        yield Drawing(foreseen(estimate))


def _section(series: ForeseenSeries, estimate: EstimateRecord) -> Section:
    assumed = Table(
        (Heading("What", numeric=False), Heading("Value", numeric=False), Heading("From", numeric=False)),
        tuple((each.name, each.value, each.because) for each in series.assumptions),
        caption="What the estimate rests on. Ranges hold 95 %, or anything in them is as likely.",
    )
    return Section(title(series), (expected(series, estimate), Folded("What it rests on", (assumed,))))


def expected(series: ForeseenSeries, estimate: EstimateRecord) -> Table:
    """The table of a strategy: a row a number of workers."""
    points = series.points
    step, step_length = _small_unit([each.step_seconds.value for each in points])
    unit, length = time_unit([each.training_seconds.value for each in points])
    charges = [each.charge for each in points if each.charge is not None]
    columns: list[tuple[Heading, list[str]]] = [
        (Heading("Workers", brief="n"), [str(each.workers) for each in points]),
        (
            Heading("Training time", unit, f"time {unit}"),
            _column([each.training_seconds for each in points], length),
        ),
        (Heading("Speed-up", "training time", "S"), _column([each.speedup for each in points], 1.0)),
        (
            Heading("Efficiency", "training time", "E"),
            [_with_ends(each.efficiency, 2 if each.efficiency.value >= 0.1 else 3) for each in points],
        ),
        (Heading("Worker-hours", brief="worker-h"), [_short(each.worker_hours.value) for each in points]),
        (
            Heading("Lost most to", brief="lost to", numeric=False),
            [BRIEF[each.dominant] if each.dominant else "–" for each in points],
        ),
        (Heading("Nodes", brief="nodes"), [str(each.nodes) for each in points]),
        (Heading("Global batch", brief="batch"), [number(each.global_batch, 0) for each in points]),
        (Heading("Updates", brief="updates"), [number(each.updates, 0) for each in points]),
        (
            Heading("Step", step, f"step {step}"),
            [_short(each.step_seconds.value / step_length) for each in points],
        ),
    ]
    if charges:
        heading = Heading("Charge", f"{estimate.charge:g} a node-hour", "charge")
        columns.insert(5, (heading, [_short(each.value) for each in charges]))
    rule = "every worker takes its own batch" if series.rule == "per-worker" else "the global batch stays"
    return Table(
        tuple(heading for heading, _ in columns),
        tuple(zip(*(cells for _, cells in columns), strict=True)),
        caption=f"Expected of {title(series)}: {rule}, all-reduce by {series.algorithm} "
        f"({series.collective}). Worker-hours are with start-up and evaluation.",
        footnotes=_footnotes(series),
        name=f"expected-{series.strategy}",
    )


def _footnotes(series: ForeseenSeries) -> tuple[str, ...]:
    larger = [each.workers for each in series.points if each.global_batch > series.training_samples]
    if not larger:
        return ()
    return (
        f"From {larger[0]} workers on the global batch is larger than the training set of "
        f"{number(series.training_samples, 0)} samples: an epoch is one step, and workers stay idle.",
    )


def _column(found: Sequence[Interval], length: float) -> list[str]:
    """Values with their ends, each with three digits or so: they may span thousands."""
    return [_with_ends(each, decimals([each.value / length]), length) for each in found]


def _short(value: float) -> str:
    return number(value, decimals([value]))


def _with_ends(found: Interval, digits: int, length: float = 1.0) -> str:
    value, low, high = (number(each / length, digits) for each in (found.value, found.low, found.high))
    return value if low == high else f"{value} ({low}–{high})"


def _small_unit(seconds: Sequence[float]) -> tuple[str, float]:
    return ("ms", 1e-3) if max(seconds) < 1 else ("s", 1.0)
