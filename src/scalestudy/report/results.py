"""The table of results, with one row for all points that differ only in seed and split."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import engines_of
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.runs import Key, metric_label
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.analysis.study_table import Row
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
    columns = [column for column in _columns(findings) if column.brief or not brief]
    verdicts = findings.advice.decision.verdicts or {}
    footnotes: dict[str, int] = {}
    # The library of the exchange is worth showing only if NCCL was used.
    named = any(row.communication == "nccl" for row in rows)
    engines = engines_of(findings.measures.groups)
    several = len(set(engines.values())) > 1
    lines: list[list[str | Cell]] = []
    for row in rows:
        by = (
            [row.implementation]
            if row.implementation != row.strategy and not brief
            else []
        )
        by += [] if is_synchronous(row.implementation) else ["asynchronous"]
        by += [row.communication] if named and row.communication else []
        by += [engines[row.key]] if several and row.key in engines else []
        strategy = Cell(
            row.strategy,
            f"{row.strategy} ({', '.join(by)})" if by else "",
            ", ".join(by),
        )
        lines.append(
            [
                strategy,
                _whole(row.workers),
                *(str(row.key.swept.get(name, "")) for name in names),
            ]
        )
    for column in columns:
        estimates = [column.of(row) for row in rows]
        if brief and not column.interval:
            estimates = [Estimate(estimate.value) for estimate in estimates]
        digits = column.digits
        if digits is None:
            digits = decimals([estimate.value or 0.0 for estimate in estimates])
        for line, row, estimate in zip(lines, rows, estimates, strict=True):
            cell, why = _measured(estimate, digits), None if brief else column.why(row)
            is_quality, verdict = (
                column.heading.name == "Quality",
                verdicts.get(row.key, row.verdict),
            )
            failed = (
                is_quality
                and not brief
                and row.failed_runs == row.runs
                and verdict.kind in SHORT
            )
            if failed:
                why = _why_failed(row, verdict)
            if why and (cell.text == NOT_AVAILABLE or is_quality):
                cell = replace(cell, note=footnotes.setdefault(why, len(footnotes) + 1))
            if is_quality:
                kind = "worse" if verdict.kind in BAD_VERDICTS else ""
                # As the decision and the faded points of the figure say, whether chance or not.
                seems = "seems worse; " if verdict.seems_worse and not kind else ""
                remark = SHORT[verdict.kind] if failed else seems + verdict.sentence
                cell = _of_other_row(replace(cell, remark=remark, kind=kind), row)
            line.append(cell)
    batches = not brief and (
        not rows or any(row.global_batch or not row.source for row in rows)
    )
    timings = any(row.timings for row in rows)
    for line, row in zip(lines, rows, strict=True):
        line.append(_whole(row.trainings))
        if timings:
            line.append(_whole(row.timings))
        if batches:
            line.append(_whole(row.global_batch))
    choice, labels = findings.advice.choice, series_labels(findings)
    return Table(
        (
            *identity_headings(names),
            *(replace(column.heading, detail=not column.brief) for column in columns),
            *_run_headings(timings),
            *(
                [Heading("Global batch", "samples", "batch", detail=True)]
                if batches
                else []
            ),
        ),
        tuple(map(tuple, lines)),
        footnotes=tuple(footnotes),
        name="results-table",
        chosen=next(
            (
                index
                for index, row in enumerate(rows)
                if choice and row.key == choice.key
            ),
            None,
        ),
        essential=2
        + len(names)
        + [column.heading.name for column in columns].index("Quality")
        + 1,
        sortable=True,
        series=tuple(labels.fields(row.key)["series"] for row in rows),
        links=tuple(_link(row.key) for row in rows),
        csv=to_csv(rows),
    )


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
    return sorted(
        name
        for name in values
        if len(values[name]) > 1 or not name.startswith("script.")
    )


def identity_cells(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    """Cells of the columns that identify a row."""
    return (
        row.strategy,
        str(row.workers),
        *(str(row.key.swept.get(name, "")) for name in names),
    )


def identity_headings(names: Sequence[str]) -> list[Heading]:
    """Headings of the columns that identify a row: strategy, workers and other swept values."""
    return [
        Heading("Strategy", brief="strategy", numeric=False),
        Heading("Workers", brief="n"),
        *(
            Heading(name.split(".")[-1], name, name.split(".")[-1], numeric=False)
            for name in names
        ),
    ]


def _columns(findings: Findings) -> list[_Column]:
    """Measured columns, those for the decision first; for numbers from other tools only known columns."""
    rows = findings.rows
    metric = (
        " / ".join(dict.fromkeys(metric_label(row.metric) for row in rows)) or "metric"
    )
    lower = (
        ", lower is better" if any(row.sense.better == "lower" for row in rows) else ""
    )
    basis, against = basis_of(rows), _against(rows)
    prices = [row.price for row in rows if row.price]
    unit, length = time_unit([row.training_seconds.value or 0.0 for row in rows])
    time_of = (
        "from start to result"
        if any(price.basis == "wall" for price in prices)
        else "training only"
    )
    wall_unit, wall_length = time_unit([price.seconds.value or 0.0 for price in prices])
    billed, billed_hours = cost_unit([price.cost.value for price in prices])
    target = next((row.useful.target for row in rows if row.useful), None)
    digits = max((row.digits for row in rows), default=3)
    goal = "" if target is None else f"{metric} {target:.{digits}f}"

    def untimed(row: Row) -> str:
        return row.speed.reason or UNTIMED

    # Without a time of the whole training, rows are compared by the time of an epoch or of a sample.
    timed_by = {row.basis for row in rows if row.price and row.price.basis == "rate"}
    time = Heading(TIME, f"{wall_unit}, {time_of}", f"time {wall_unit}")
    if timed_by == {"epoch"}:
        time = Heading("Time of an epoch", wall_unit, f"epoch {wall_unit}")
    columns = [
        _Column(
            time,
            lambda row: (
                row.price.seconds.scaled(1 / wall_length) if row.price else NOTHING
            ),
            untimed,
            interval=False,
        ),
        _Column(
            Heading("Cost efficiency", "cost of the reference / cost", "cost eff."),
            lambda row: row.price.efficiency if row.price else NOTHING,
            lambda row: NO_REFERENCE if row.price else untimed(row),
            2,
        ),
        _Column(
            Heading("Quality", metric + lower, metric),
            lambda row: row.quality,
            _why_quality,
            digits,
        ),
        _Column(
            Heading(
                "Cost", f"{findings.advice.decision.bill}-{billed}", f"cost {billed}"
            ),
            lambda row: (
                row.price.cost.scaled(1 / billed_hours) if row.price else NOTHING
            ),
            untimed,
            interval=False,
        ),
        _Column(
            Heading("Speed-up", basis + against, "S"),
            lambda row: row.speed.steady,
            lambda row: row.speed.reason,
            2,
        ),
        _Column(
            Heading("Useful speed-up", f"speed-up / samples to {goal}", "useful"),
            lambda row: row.useful.speedup if row.useful else NOTHING,
            _why_useful,
            2,
        ),
        _Column(
            Heading("Scaling efficiency", basis + against, "E"),
            lambda row: row.efficiency,
            lambda row: row.speed.reason,
            2,
            interval=False,
        ),
        _Column(
            Heading("Throughput", "samples/s", "samples/s"),
            lambda row: row.throughput,
            _why_throughput,
            interval=False,
        ),
        _Column(
            Heading("Training time", unit, f"training {unit}"),
            lambda row: row.training_seconds.scaled(1 / length),
            lambda row: (
                "its training time is unknown"
                if row.source
                else "a training time is not a number"
            ),
            brief=False,
        ),
        _Column(
            Heading("Speed-up", "training time" + against, "S of training"),
            lambda row: row.speed.training,
            lambda row: row.speed.training_reason,
            2,
            brief=False,
        ),
    ]
    left_out = [] if prices else [TIME, "Cost efficiency", "Cost"]
    left_out += [TIME] if "throughput" in timed_by else []
    # A time that is the training time already is shown once.
    times = [
        (row.price.seconds.value, row.training_seconds.value)
        for row in rows
        if row.price
    ]
    left_out += (
        ["Training time"] if times and all(one == other for one, other in times) else []
    )
    left_out += [] if any(_differs(row) for row in rows) else ["Useful speed-up"]
    columns = [column for column in columns if column.heading.name not in left_out]
    if rows and all(row.source for row in rows):
        columns = [column for column in columns if _known_elsewhere(column, rows)]
    return columns


def _known_elsewhere(column: _Column, rows: Sequence[Row]) -> bool:
    if column.brief and column.heading.name in (
        "Quality",
        "Speed-up",
        "Scaling efficiency",
    ):
        return True
    # The speed-up of training times is shown once.
    again = column.heading.unit.startswith("training time") and all(
        row.basis == "training" for row in rows
    )
    return not again and any(column.of(row).value is not None for row in rows)


def _against(rows: Sequence[Row]) -> str:
    """Baseline of the speed-ups, unless it is one worker."""
    counts = {row.speed.against for row in rows if row.speed.baseline is not None}
    if counts <= {1}:
        return ""
    return f", against {counts.pop()}" if len(counts) == 1 else ", some relative"


def _whole(count: int | None) -> Cell:
    return Cell(format_number(count, 0), sort="" if count is None else str(count))


def _measured(estimate: Estimate, digits: int) -> Cell:
    text = format_number(estimate.value, digits)
    sort = "" if text == NOT_AVAILABLE else repr(estimate.value)
    return Cell(
        text, with_interval(estimate, digits), span(estimate, digits) or "", sort=sort
    )


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
    return replace(cell, text=cell.text + mark, full=cell.full and cell.full + mark)


def _differs(row: Row) -> bool:
    """Whether the useful speed-up says more than the speed-up."""
    useful = row.useful
    return (
        useful is not None
        and not useful.by_construction
        and useful.source != useful.baseline
    )


def _why_useful(row: Row) -> str | None:
    useful = row.useful
    if useful is None or useful.ratio.value is not None:
        return row.speed.reason or "no quality was recorded by epoch"
    return f"{useful.reached} of {useful.runs} runs reached it"


def _why_throughput(row: Row) -> str:
    if row.source:
        return "its throughput is unknown"
    return "no steady throughput: one epoch only, or resumed in all others"


def _why_quality(row: Row) -> str | None:
    """Why the quality is missing, or what its mean hides: failed runs and the worst run."""
    if row.quality.value is None:
        unknown = row.verdict.kind == "unknown"
        reason = f"a run ended without a finite {metric_label(row.metric)}"
        return "its quality is unknown" if unknown else reason
    if not row.failed_runs or row.runs == 1:
        return None
    failed = f"{row.failed_runs} of {row.runs} runs diverged, stayed at chance level or collapsed"
    return f"{failed}; the worst has {format_number(row.worst_quality, row.digits)}"


def _why_failed(row: Row, verdict: Verdict) -> str:
    """Why all runs of a row failed, with the same words for all rows with the same chance level."""
    if verdict.kind != "chance" or row.constant_quality is None:
        return verdict.sentence
    chance = format_number(row.constant_quality, row.digits)
    return f"learned nothing: no better than {chance}, the quality of a constant answer"
