"""The results table as shown, in the terminal and in HTML alike: cells, intervals and footnotes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.table import Row
from scalestudy.report.columns import basis_of
from scalestudy.report.document import Heading
from scalestudy.report.format import NOT_AVAILABLE, decimals, number, span, time_unit, with_interval

OF_PRICES = ("Time to train", "Cost efficiency", "Cost")
DECISIVE = ("Quality", "Speed-up", "Scaling efficiency")
"""Columns that tables of numbers from elsewhere have whatever is known."""
BRIEF = {
    "reference": "reference",
    "no-worse": "no worse",
    "worse": "worse",
    "unclear": "not settled",
    "no-reference": "no reference",
    "diverged": "diverged",
    "chance": "learned nothing",
    "collapsed": "collapsed",
}
"""Verdicts on quality, where there is no room for their sentences."""


@dataclass(frozen=True)
class Cell:
    """One cell: the value, its interval in two ways of writing, and its footnote's number."""

    text: str
    with_interval: str
    span: str | None = None
    note: int | None = None
    numeric: bool = True
    value: str = ""
    """By what it is sorted: a number with all digits, or the text; empty where it is not known."""


@dataclass(frozen=True)
class TableLine:
    """One row of the table."""

    cells: tuple[Cell, ...]
    chosen: bool
    workers: int
    verdict: str
    kind: str

    @property
    def brief(self) -> str:
        """The verdict in two words; empty where there is nothing to say."""
        return BRIEF.get(self.kind, "")


@dataclass(frozen=True)
class TableView:
    """The table with its footnotes, numbered from 1."""

    headings: tuple[Heading, ...]
    lines: tuple[TableLine, ...]
    footnotes: tuple[str, ...]
    decision: int
    """How many columns, from the first, a decision needs: what was swept, time, cost efficiency, quality."""


@dataclass(frozen=True)
class _Column:
    """A measured column: its heading, a row's value, why it may be missing, and its decimals where fixed."""

    heading: Heading
    of: Callable[[Row], Estimate]
    why: Callable[[Row], str | None]
    digits: int | None = None
    brief: bool = False
    """Whether it stands in the brief table."""
    interval: bool = True
    """Whether the brief table shows its interval."""


def view(findings: Findings, brief: bool = False) -> TableView:
    """Lay out the table of a study; `brief` has the columns of the decision alone."""
    rows = findings.rows
    names = sorted({name for row in rows for name in row.key.swept})
    footnotes: list[str] = []
    columns = [column for column in _columns(findings) if column.brief or not brief]
    # Who has NCCL wants to see who uses it; elsewhere there is little choice.
    named = any(row.communication == "nccl" for row in rows)
    laid: list[list[Cell]] = [_fixed(row, names, brief, communication=named) for row in rows]
    for column in columns:
        estimates = [column.of(row) for row in rows]
        if brief and not column.interval:
            estimates = [Estimate(found.value) for found in estimates]
        digits = (
            decimals([found.value or 0.0 for found in estimates]) if column.digits is None else column.digits
        )
        for cells, row, found in zip(laid, rows, estimates, strict=True):
            cells.append(_measured(found, digits, column.why(row), footnotes))
    headings = [Heading("Strategy", brief="strategy", numeric=False), Heading("Workers", brief="n")]
    headings += [Heading(name.split(".")[-1], name, name.split(".")[-1], numeric=False) for name in names]
    headings += [column.heading for column in columns]
    headings.append(Heading("Runs", brief="runs"))
    batches = not brief and (not rows or any(row.global_batch or not row.source for row in rows))
    headings += [Heading("Global batch", "samples", "batch")] if batches else []
    for cells, row in zip(laid, rows, strict=True):
        cells += [_whole(row.runs), *([_whole(row.global_batch)] if batches else [])]
    choice = findings.advice.choice
    lines = [
        TableLine(tuple(cells), choice is not None and choice.key == row.key, row.workers, *_verdict(row))
        for cells, row in zip(laid, rows, strict=True)
    ]
    return TableView(tuple(headings), tuple(lines), tuple(footnotes), 2 + len(names) + _decision(columns))


def _columns(findings: Findings) -> list[_Column]:
    """Measured columns, those that a decision needs first; from elsewhere those that some row has."""
    rows = findings.rows
    metric = " / ".join(dict.fromkeys(metric_label(row.metric) for row in rows)) or "metric"
    lower = ", lower is better" if any(row.sense.better == "lower" for row in rows) else ""
    basis, against = basis_of(rows), _against(rows)
    prices = [row.price for row in rows if row.price]
    unit, length = time_unit([row.training_seconds.value or 0.0 for row in rows])
    time_of = "from start to result" if any(price.basis == "wall" for price in prices) else "training alone"
    wall_unit, wall_length = time_unit([price.seconds.value or 0.0 for price in prices])
    target = next((row.to_target.quality for row in rows if row.to_target), None)
    digits = max((row.digits for row in rows), default=3)
    goal = "" if target is None else f"{metric} {target:.{digits}f}"
    columns = [
        _Column(
            Heading("Time to train", f"{wall_unit}, {time_of}", f"time {wall_unit}"),
            lambda row: row.price.seconds.scaled(1 / wall_length) if row.price else NOTHING,
            lambda row: row.speed.reason or "its time was not recorded",
            brief=True,
            interval=False,
        ),
        _Column(
            Heading("Cost efficiency", "cost of the reference / cost", "cost eff."),
            lambda row: row.price.efficiency if row.price else NOTHING,
            lambda row: row.speed.reason or "its time was not recorded",
            2,
            brief=True,
        ),
        _Column(
            Heading("Quality", metric + lower, metric),
            lambda row: row.quality,
            _why_no_quality,
            digits,
            brief=True,
        ),
        _Column(
            Heading("Cost", f"{findings.advice.decision.bill}-hours", "cost h"),
            lambda row: row.price.cost if row.price else NOTHING,
            lambda row: row.speed.reason or "its time was not recorded",
            brief=True,
            interval=False,
        ),
        _Column(
            Heading("Speed-up", basis + against, "S"),
            lambda row: row.speed.steady,
            lambda row: row.speed.reason,
            2,
            brief=True,
        ),
        _Column(
            Heading("Scaling efficiency", basis + against, "E"),
            lambda row: row.efficiency,
            lambda row: row.speed.reason,
            2,
            brief=True,
            interval=False,
        ),
        _Column(
            Heading("Throughput", "samples/s", "samples/s"),
            lambda row: row.throughput,
            _why_no_throughput,
            brief=True,
            interval=False,
        ),
        _Column(
            Heading("Time to target", f"{wall_unit} to {goal}", f"to {goal}"),
            lambda row: row.to_target.seconds.scaled(1 / wall_length) if row.to_target else NOTHING,
            _why_no_target,
        ),
        _Column(
            Heading("Training time", unit, f"training {unit}"),
            lambda row: row.training_seconds.scaled(1 / length),
            lambda row: "its training time is not known" if row.source else "a training time is not a number",
        ),
        _Column(
            Heading("Speed-up", "training time" + against, "S of training"),
            lambda row: row.speed.training,
            lambda row: row.speed.training_reason,
            2,
        ),
        _Column(
            Heading("Speed-up", "from start to result" + against, "S of wall"),
            lambda row: row.speed.wall,
            lambda row: row.speed.training_reason,
            2,
        ),
    ]
    if not prices:
        columns = [column for column in columns if column.heading.name not in OF_PRICES]
    if target is None:
        columns = [column for column in columns if column.heading.name != "Time to target"]
    if rows and all(row.source for row in rows):
        columns = [
            each
            for each in columns
            if each.heading.name in DECISIVE or _says_more(each.heading, each.of, rows)
        ]
    return columns


def _decision(columns: Sequence[_Column]) -> int:
    """How many columns, from the first, a decision needs: up to the quality."""
    return next(place for place, column in enumerate(columns, 1) if column.heading.name == "Quality")


def _says_more(heading: Heading, of: Callable[[Row], Estimate], rows: Sequence[Row]) -> bool:
    """Whether a column from elsewhere is known of any row, and is not the first speed-up again."""
    again = heading.unit.startswith("training time") and all(row.basis == "training" for row in rows)
    return not again and any(of(row).value is not None for row in rows)


def _against(rows: Sequence[Row]) -> str:
    """What speed-ups are against, where that is not one worker; `notes` say why."""
    counts = {row.speed.against for row in rows if row.speed.baseline is not None}
    if counts <= {1}:
        return ""
    return f", against {counts.pop()}" if len(counts) == 1 else ", some relative"


def shown(lines: Sequence[TableLine], most: int) -> tuple[TableLine, ...]:
    """The first of many lines, and the advised one."""
    return (*lines[:most], *(line for line in lines[most:] if line.chosen))


def _verdict(row: Row) -> tuple[str, str]:
    return row.verdict.sentence, row.verdict.kind


def _fixed(row: Row, names: Sequence[str], brief: bool, *, communication: bool) -> list[Cell]:
    by = [row.implementation] if row.implementation != row.strategy and not brief else []
    by += [row.communication] if communication and row.communication else []
    told = ", ".join(by) or None
    strategy = Cell(
        row.strategy,
        f"{row.strategy} ({told})" if told else row.strategy,
        told,
        numeric=False,
        value=row.strategy,
    )
    texts = [str(row.key.swept.get(name, "")) for name in names]
    return [strategy, _whole(row.workers), *(Cell(text, text, numeric=False, value=text) for text in texts)]


def _whole(count: int | None) -> Cell:
    text = number(count, 0)
    return Cell(text, text, value="" if count is None else str(count))


def _measured(estimate: Estimate, digits: int, reason: str | None, footnotes: list[str]) -> Cell:
    text = number(estimate.value, digits)
    note = None
    if text == NOT_AVAILABLE and reason:
        if reason not in footnotes:
            footnotes.append(reason)
        note = footnotes.index(reason) + 1
    value = "" if text == NOT_AVAILABLE else repr(estimate.value)
    return Cell(text, with_interval(estimate, digits), span(estimate, digits), note, value=value)


def _why_no_target(row: Row) -> str:
    if row.to_target is None:
        return row.speed.reason or "its epochs tell no quality"
    return f"{row.to_target.reached} of {row.to_target.runs} runs reached it"


def _why_no_throughput(row: Row) -> str:
    if row.source:
        return "its throughput is not known"
    return "trained for one epoch only, or resumed in the others, and so warming up: no steady throughput"


def _why_no_quality(row: Row) -> str:
    if row.verdict.kind == "unknown":
        return "its quality is not known"
    return f"a run ended without a finite {metric_label(row.metric)}"
