"""The table of results, with one row for all points that differ only in seed and split."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scalestudy.analysis.estimate import NOTHING, Estimate
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import Basis, engines_of
from scalestudy.analysis.price import Price
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.runs import Key, metric_label
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.wording.speed_up import REASON_WORDS, describe_reason
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.plugins.strategies import is_synchronous
from scalestudy.report.document import Cell, Heading, Table
from scalestudy.report.figure_data import basis_of
from scalestudy.report.figure_data import labels as series_labels
from scalestudy.report.formats import to_csv
from scalestudy.report.number_format import (
    NOT_AVAILABLE,
    cost_unit,
    decimals,
    format_number,
    span,
    time_unit,
    with_interval,
)

TIME = "Time to train"
UNTIMED = "its time was not recorded"
NO_REFERENCE = "no row of sound quality to compare its cost with"
BAD_VERDICTS = ("worse", "diverged", "chance")
SHORT = {"diverged": "diverged", "chance": "at chance", "collapsed": "collapsed"}
"""Verdicts that are shown as a footnote if all runs of a row have them."""


@dataclass(frozen=True)
class _Column:
    """A measured column: its heading, its value for a row, why that may be missing, fixed decimals."""

    heading: Heading
    of: Callable[[Row], Estimate]
    why: Callable[[Row], str | None]
    digits: int | None = None
    brief: bool = True
    """Whether the brief table has this column."""
    interval: bool = True
    """Whether the brief table shows its interval."""


def results_table(findings: Findings, brief: bool = False) -> Table:
    """Every row of a study; with `brief`, only the columns for the decision, without footnotes."""
    rows = findings.rows
    names = swept_columns(rows)
    columns = _columns(findings)
    if brief:
        columns = [column for column in columns if column.brief]
    footnotes: dict[str, int] = {}
    lines = _identity_lines(findings, names, brief)
    for column in columns:
        _append_column(lines, column, findings, footnotes, brief)
    timings = any(row.timings for row in rows)
    batches = not brief and _have_batches(rows)
    for line, row in zip(lines, rows, strict=True):
        line.append(_whole(row.trainings))
        if timings:
            line.append(_whole(row.timings))
        if batches:
            line.append(_whole(row.global_batch))
    headings = identity_headings(names)
    for column in columns:
        # What the decision is not made by, a page shows on demand.
        on_demand = not column.brief
        headings.append(replace(column.heading, detail=on_demand))
    headings += _run_headings(timings)
    if batches:
        headings.append(Heading("Global batch", "samples", "batch", detail=True))
    # A narrow terminal drops columns from the right, but never the quality.
    measured = [column.heading.name for column in columns]
    essential = 2 + len(names) + measured.index("Quality") + 1
    labels = series_labels(findings)
    series, links = [], []
    for row in rows:
        series.append(labels.fields(row.key)["series"])
        links.append(_link(row.key))
    return Table(
        tuple(headings),
        tuple(map(tuple, lines)),
        footnotes=tuple(footnotes),
        name="results-table",
        chosen=_place_of_choice(findings),
        essential=essential,
        sortable=True,
        series=tuple(series),
        links=tuple(links),
        csv=to_csv(rows),
    )


def _identity_lines(
    findings: Findings,
    names: Sequence[str],
    brief: bool,
) -> list[list[str | Cell]]:
    """The first cells of each row: its strategy with how it was computed, workers and swept values."""
    # The library of the exchange is worth showing only if NCCL was used.
    by_library = any(row.communication == "nccl" for row in findings.rows)
    engines = engines_of(findings.measures.groups)
    # Where all rows have one engine, its name in each would say nothing.
    several_engines = len(set(engines.values())) > 1
    lines: list[list[str | Cell]] = []
    for row in findings.rows:
        details = []
        if row.implementation != row.strategy and not brief:
            details.append(row.implementation)
        # Its throughput counts samples, not progress, so that readers must know.
        if not is_synchronous(row.implementation):
            details.append("asynchronous")
        if by_library and row.communication:
            details.append(row.communication)
        if several_engines and row.key in engines:
            details.append(engines[row.key])
        listed = ", ".join(details)
        full = ""
        if listed:
            full = f"{row.strategy} ({listed})"
        strategy = Cell(row.strategy, full, listed)
        line: list[str | Cell] = [strategy, _whole(row.workers)]
        line += _swept_cells(row, names)
        lines.append(line)
    return lines


def _swept_cells(row: Row, names: Sequence[str]) -> list[str]:
    swept = row.key.swept
    return [str(swept.get(name, "")) for name in names]


def _append_column(
    lines: Sequence[list[str | Cell]],
    column: _Column,
    findings: Findings,
    footnotes: dict[str, int],
    brief: bool,
) -> None:
    """Append a measured column to the lines, and number the reasons of its missing values."""
    rows = findings.rows
    estimates, values = [], []
    for row in rows:
        estimate = column.of(row)
        if brief and not column.interval:
            estimate = Estimate(estimate.value)
        estimates.append(estimate)
        values.append(estimate.value or 0.0)
    digits = column.digits
    if digits is None:
        digits = decimals(values)
    verdicts = findings.advice.decision.verdicts or {}
    for line, row, estimate in zip(lines, rows, estimates, strict=True):
        cell = _measured(estimate, digits)
        # The brief table has no footnotes.
        why = None if brief else column.why(row)
        if column.heading.name == "Quality":
            # The decision's is stricter where the best one-worker row is another than the baseline.
            verdict = verdicts.get(row.key, row.verdict)
            line.append(_quality_cell(cell, row, verdict, why, footnotes, brief))
            continue
        if why and cell.text == NOT_AVAILABLE:
            cell = _with_footnote(cell, why, footnotes)
        line.append(cell)


def _quality_cell(
    cell: Cell,
    row: Row,
    verdict: Verdict,
    why: str | None,
    footnotes: dict[str, int],
    brief: bool,
) -> Cell:
    """The quality of a row with its verdict, and a footnote on failed runs."""
    remark = describe_verdict(verdict)
    kind = "worse" if verdict.kind in BAD_VERDICTS else ""
    if verdict.seems_worse and not kind:
        # As the decision and the faded points of the figure say, whether chance or not.
        remark = f"seems worse: {remark}"
    # Of many rows that all stayed at chance, the sentence would fill the table.
    all_failed = row.failed_runs == row.runs and verdict.kind in SHORT
    if all_failed and not brief:
        why = _why_failed(row, verdict)
        remark = SHORT[verdict.kind]
    if why:
        cell = _with_footnote(cell, why, footnotes)
    return _of_other_row(replace(cell, remark=remark, kind=kind), row)


def _with_footnote(cell: Cell, why: str, footnotes: dict[str, int]) -> Cell:
    """The cell with the number of a footnote; cells with one reason share it."""
    number = footnotes.setdefault(why, len(footnotes) + 1)
    return replace(cell, note=number)


def _have_batches(rows: Sequence[Row]) -> bool:
    """Whether the global batch is worth a column: numbers from other tools often lack it."""
    # The headings of a study that has not begun are those that it will have.
    if not rows:
        return True
    return any(row.global_batch or not row.source for row in rows)


def _place_of_choice(findings: Findings) -> int | None:
    choice = findings.advice.choice
    for place, row in enumerate(findings.rows):
        if choice and row.key == choice.key:
            return place
    return None


def _link(key: Key) -> str:
    """Anchor of a row: its identity, so that an address stays true when the report is written again."""
    words = f"row {key.strategy} {key.workers} {key.details}".strip()
    return re.sub(r"[^A-Za-z0-9._]+", "-", words).strip("-")


def swept_columns(rows: Sequence[Row]) -> list[str]:
    """Names of swept values, besides strategy and workers; a script's arguments only if they differ."""
    values: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.key.swept.items():
            values.setdefault(name, set()).add(str(value))
    names = []
    for name in sorted(values):
        # A user's script takes its paths and options in every run; only what differs is a setting of a row.
        if len(values[name]) > 1 or not name.startswith("script."):
            names.append(name)
    return names


def identity_cells(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    """Cells of the columns that identify a row."""
    return (row.strategy, str(row.workers), *_swept_cells(row, names))


def identity_headings(names: Sequence[str]) -> list[Heading]:
    """Headings of the columns that identify a row: strategy, workers and other swept values."""
    headings = [
        Heading("Strategy", brief="strategy", numeric=False),
        Heading("Workers", brief="n"),
    ]
    for name in names:
        last = name.split(".")[-1]
        headings.append(Heading(last, name, last, numeric=False))
    return headings


def _columns(findings: Findings) -> list[_Column]:
    """Measured columns, those for the decision first; for numbers from other tools only known columns."""
    rows = findings.rows
    prices = [row.price for row in rows if row.price]
    columns = [
        *_decision_columns(findings, prices),
        *_speed_columns(rows),
        *_training_time_columns(rows),
    ]
    left_out = _left_out(rows, prices)
    columns = [column for column in columns if column.heading.name not in left_out]
    # Tables from elsewhere lack most of what our own runs record: columns of n/a would hide the rest.
    if rows and all(row.source for row in rows):
        columns = [column for column in columns if _known_elsewhere(column, rows)]
    return columns


def _decision_columns(findings: Findings, prices: Sequence[Price]) -> list[_Column]:
    """Time, cost efficiency, quality and cost: what the choice is made by."""
    rows = findings.rows
    seconds, costs = [], []
    for price in prices:
        seconds.append(price.seconds.value or 0.0)
        costs.append(price.cost.value)
    wall_unit, wall_length = time_unit(seconds)
    billed, billed_hours = cost_unit(costs)
    bill = findings.advice.decision.bill
    metric = _metrics(rows)
    lower = ""
    if any(row.sense.better == "lower" for row in rows):
        lower = ", lower is better"

    def time(row: Row) -> Estimate:
        if row.price is None:
            return NOTHING
        return row.price.seconds.scaled(1 / wall_length)

    def cost(row: Row) -> Estimate:
        if row.price is None:
            return NOTHING
        return row.price.cost.scaled(1 / billed_hours)

    def efficiency(row: Row) -> Estimate:
        return row.price.efficiency if row.price else NOTHING

    def no_efficiency(row: Row) -> str | None:
        return NO_REFERENCE if row.price else _why_untimed(row)

    cost_heading = Heading("Cost", f"{bill}-{billed}", f"cost {billed}")
    efficiency_heading = Heading(
        "Cost efficiency",
        "cost of the reference / cost",
        "cost eff.",
    )
    return [
        _Column(
            _time_heading(rows, prices, wall_unit),
            time,
            _why_untimed,
            interval=False,
        ),
        _Column(efficiency_heading, efficiency, no_efficiency, 2),
        _Column(
            Heading("Quality", metric + lower, metric),
            lambda row: row.quality,
            _why_quality,
            quality_digits(rows),
        ),
        _Column(cost_heading, cost, _why_untimed, interval=False),
    ]


def _time_heading(rows: Sequence[Row], prices: Sequence[Price], unit: str) -> Heading:
    # Without a time of the whole training, rows are compared by the time of an epoch or of a sample.
    if _rate_bases(rows) == {"epoch"}:
        return Heading("Time of an epoch", unit, f"epoch {unit}")
    time_of = "training only"
    if any(price.basis == "wall" for price in prices):
        time_of = "from start to result"
    return Heading(TIME, f"{unit}, {time_of}", f"time {unit}")


def _rate_bases(rows: Sequence[Row]) -> set[Basis]:
    """What the rows are compared by that have no time of a whole training."""
    bases = set()
    for row in rows:
        if row.price and row.price.basis == "rate":
            bases.add(row.basis)
    return bases


def quality_digits(rows: Sequence[Row]) -> int:
    """Decimals of qualities that stand below each other."""
    return max([row.digits for row in rows], default=3)


def _speed_columns(rows: Sequence[Row]) -> list[_Column]:
    """Speed-ups, scaling efficiency and throughput."""
    unit = basis_of(rows) + _against(rows)

    def useful(row: Row) -> Estimate:
        return row.useful.speedup if row.useful else NOTHING

    def no_speed_up(row: Row) -> str | None:
        return describe_reason(row.speed.reason)

    return [
        _Column(
            Heading("Speed-up", unit, "S"),
            lambda row: row.speed.steady,
            no_speed_up,
            2,
        ),
        _Column(
            Heading(
                "Useful speed-up",
                f"speed-up / samples to {_goal(rows)}",
                "useful",
            ),
            useful,
            _why_useful,
            2,
        ),
        _Column(
            Heading("Scaling efficiency", unit, "E"),
            lambda row: row.efficiency,
            no_speed_up,
            2,
            interval=False,
        ),
        _Column(
            Heading("Throughput", "samples/s", "samples/s"),
            lambda row: row.throughput,
            _why_throughput,
            interval=False,
        ),
    ]


def _metrics(rows: Sequence[Row]) -> str:
    """Names of the rows' metrics: `IoU`."""
    labels = [metric_label(row.metric) for row in rows]
    names = dict.fromkeys(labels)
    return " / ".join(names) or "metric"


def _goal(rows: Sequence[Row]) -> str:
    """The quality that useful speed-ups are about: `IoU 0.93`; "" if there are none."""
    for row in rows:
        if row.useful:
            digits = quality_digits(rows)
            return f"{_metrics(rows)} {row.useful.target:.{digits}f}"
    return ""


def _training_time_columns(rows: Sequence[Row]) -> list[_Column]:
    """The time of the epochs alone and its speed-up, which only the page shows."""
    seconds = [row.training_seconds.value or 0.0 for row in rows]
    unit, length = time_unit(seconds)

    def no_training_time(row: Row) -> str | None:
        if row.source:
            return "its training time is unknown"
        return "a training time is not a number"

    return [
        _Column(
            Heading("Training time", unit, f"training {unit}"),
            lambda row: row.training_seconds.scaled(1 / length),
            no_training_time,
            brief=False,
        ),
        _Column(
            Heading("Speed-up", "training time" + _against(rows), "S of training"),
            lambda row: row.speed.training,
            lambda row: describe_reason(row.speed.training_reason),
            2,
            brief=False,
        ),
    ]


def _left_out(rows: Sequence[Row], prices: Sequence[Price]) -> list[str]:
    """Headings of columns that would be empty, or say again what another column says."""
    names = []
    if not prices:
        names += [TIME, "Cost efficiency", "Cost"]
    if "throughput" in _rate_bases(rows):
        names.append(TIME)
    # Where they are equal, one column would repeat the other.
    planned, measured = [], []
    for row in rows:
        if row.price:
            planned.append(row.price.seconds.value)
            measured.append(row.training_seconds.value)
    if planned and planned == measured:
        names.append("Training time")
    if not any(map(_differs, rows)):
        names.append("Useful speed-up")
    return names


def _why_untimed(row: Row) -> str | None:
    return describe_reason(row.speed.reason) or UNTIMED


def _known_elsewhere(column: _Column, rows: Sequence[Row]) -> bool:
    if column.brief and column.heading.name in (
        "Quality",
        "Speed-up",
        "Scaling efficiency",
    ):
        return True
    bases = {row.basis for row in rows}
    if column.heading.unit.startswith("training time") and bases <= {"training"}:
        # The speed-up of training times is shown once.
        return False
    return any(column.of(row).value is not None for row in rows)


def _against(rows: Sequence[Row]) -> str:
    """Baseline of the speed-ups, unless it is one worker."""
    counts = set()
    for row in rows:
        if row.speed.baseline is not None:
            counts.add(row.speed.against)
    if counts <= {1}:
        return ""
    if len(counts) > 1:
        return ", some relative"
    return f", against {counts.pop()}"


def _whole(count: int | None) -> Cell:
    sort = ""
    if count is not None:
        sort = str(count)
    return Cell(format_number(count, 0), sort=sort)


def _measured(estimate: Estimate, digits: int) -> Cell:
    text = format_number(estimate.value, digits)
    # A page sorts by the number with all digits.
    sort = ""
    if text != NOT_AVAILABLE:
        sort = repr(estimate.value)
    full = with_interval(estimate, digits)
    ends = span(estimate, digits) or ""
    return Cell(text, full, ends, sort=sort)


def _run_headings(timings: bool) -> list[Heading]:
    """Headings of the numbers of runs: trainings and timing runs apart, if there are timing runs."""
    if timings:
        return [
            Heading("Trainings", brief="trained"),
            Heading("Timing runs", brief="timed"),
        ]
    return [Heading("Runs", brief="runs")]


def _of_other_row(cell: Cell, row: Row) -> Cell:
    """Mark a quality that was measured on another row, whose updates are equal."""
    other = row.quality_of
    if other is None or cell.text == NOT_AVAILABLE:
        return cell
    mark = f" = {other.strategy} {other.workers}"
    full = cell.full
    if full:
        full += mark
    return replace(cell, text=cell.text + mark, full=full)


def _differs(row: Row) -> bool:
    """Whether the useful speed-up is known, and says more than the speed-up.

    Rows that never reach the target have none; the section on the larger batch names them.
    """
    useful = row.useful
    if useful is None or useful.speedup.value is None:
        return False
    return not useful.by_construction and useful.source != useful.baseline


def _why_useful(row: Row) -> str | None:
    useful = row.useful
    if useful is None or useful.ratio.value is not None:
        return describe_reason(row.speed.reason) or "no quality was recorded by epoch"
    return f"{useful.reached} of {useful.runs} runs reached it"


def _why_throughput(row: Row) -> str:
    if row.source:
        return "its throughput is unknown"
    return REASON_WORDS["no-steady-epoch"]


def _why_quality(row: Row) -> str | None:
    """Why the quality is missing, or what its mean hides: failed runs and the worst run."""
    if row.quality.value is None:
        if row.verdict.kind == "unknown":
            return "its quality is unknown"
        return f"a run ended without a finite {metric_label(row.metric)}"
    if not row.failed_runs or row.runs == 1:
        return None
    failed = f"{row.failed_runs} of {row.runs} runs diverged, stayed at chance level or collapsed"
    return f"{failed}; the worst has {format_number(row.worst_quality, row.digits)}"


def _why_failed(row: Row, verdict: Verdict) -> str:
    """Why all runs of a row failed, with the same words for all rows with the same chance level."""
    if verdict.kind != "chance" or row.constant_quality is None:
        return describe_verdict(verdict)
    chance = format_number(row.constant_quality, row.digits)
    return f"learned nothing: no better than {chance}, the quality of a constant answer"
