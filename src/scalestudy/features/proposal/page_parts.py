"""The parts of a proposal's page that templates call by name: tables, figures, doublings, the request."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.findings import Findings
from scalestudy.features.proposal.missing import CURVE, Missing
from scalestudy.features.proposal.panel import Panel
from scalestudy.features.proposal.resource_request import (
    request_blocks,
    resource_request,
)
from scalestudy.features.proposal.subject import ProposalSubject
from scalestudy.features.proposal.table_columns import COLUMNS, unit_of
from scalestudy.features.proposal.weak_scaling import weak_scaling
from scalestudy.report.against_workers import efficiency, speedup
from scalestudy.report.document import (
    Block,
    Drawing,
    Heading,
    Paragraph,
    Table,
    headings_of,
)
from scalestudy.report.figure import Figure
from scalestudy.report.notes import environment_table
from scalestudy.report.number_format import decimals, format_number, with_interval
from scalestudy.report.time_and_cost import phases
from scalestudy.util.errors import UserError
from scalestudy.util.text import count_noun

DOUBLED = Missing(
    "no number of workers was measured together with its double",
    "Double the number of workers each time, as in `workers = [1, 2, 4]` under [sweep].",
)
GROWING = Missing(
    "no series whose batch grows with the workers was measured",
    'Sweep `batch = ["global", "per-worker"]`: the second keeps the work of each worker.',
)
FIGURES: dict[str, Callable[[Findings], list[Figure]]] = {
    "speedup": speedup,
    "speedup-training": speedup,
    "efficiency": efficiency,
    "phases": phases,
}
"""Figures that a panel may contain, each with the function that draws its group."""


class PartContent(NamedTuple):
    """The blocks that a template function adds to the page, and what is missing for them."""

    blocks: Sequence[Block] = ()
    missing: Sequence[Missing] = ()


def table_part(subject: ProposalSubject, *names: str, caption: str = "") -> PartContent:
    """Return a table of the columns that have values; columns without are missing."""
    _check(names, COLUMNS, "column")
    missing: list[Missing] = []
    headings: list[Heading] = []
    filled: list[list[str]] = []
    for name in names:
        column = COLUMNS[name]
        cells = column.cells(subject)
        if any(cells):
            headings.append(Heading(column.title, unit_of(column, subject)))
            filled.append(cells)
        else:
            why = f"no value for the column `{name}`"
            missing.append(Missing(why, column.remedy))
    if len(headings) < 2:
        # One column, usually the workers, says nothing by itself.
        return PartContent((), missing)
    if not caption:
        series = subject.row.strategy
        details = subject.row.key.details
        if details:
            series += f" ({details})"
        caption = f"{series}, by number of workers."
    rows = tuple(zip(*filled, strict=True))
    return PartContent((Table(tuple(headings), rows, caption),), missing)


def figure_part(subject: ProposalSubject, name: str) -> PartContent:
    """Return a figure of the report, which needs at least two rows."""
    from altair.utils.schemapi import debug_mode

    _check([name], FIGURES, "figure")
    figures: list[Figure] = []
    if len(subject.rows) > 1:
        # Our charts are valid, and validating each of their parts takes longer than drawing them.
        with debug_mode(False):
            figures = FIGURES[name](subject.findings)
    for figure in figures:
        if figure.name == name:
            return PartContent((Drawing(figure),))
    why = f"there is nothing to draw in the figure `{name}`"
    return PartContent(missing=(Missing(why, CURVE),))


def _check(names: Sequence[str], known: dict[str, Any], what: str) -> None:
    for name in names:
        if name not in known:
            raise UserError(
                f"a known {what}: {', '.join(known)}",
                repr(name),
                "Correct the panel file.",
            )


def doublings(subject: ProposalSubject) -> list[tuple[int, Estimate]]:
    """Return each n for which n and 2n workers were measured, and how many times faster 2n workers train.

    Training times are compared if both rows processed equally many samples, else throughputs.
    """
    # Of one series, in which each number of workers has one row.
    rows = {row.workers: row for row in subject.rows}
    training_seconds = subject.findings.measures.training_seconds
    rates = subject.findings.measures.rate
    factors: dict[int, Estimate] = {}
    for row in subject.rows:
        double = rows.get(2 * row.workers)
        if double is None:
            continue
        samples = row.samples_processed
        if samples is not None and samples == double.samples_processed:
            # Seconds fall where rates rise, so the larger row is the denominator.
            factors[row.workers] = training_seconds.ratio(row.key, double.key)
        elif rates.values.get(row.key) and rates.values.get(double.key):
            factors[row.workers] = rates.ratio(double.key, row.key)
    known = []
    for workers, factor in factors.items():
        if factor.value is not None:
            known.append((workers, factor))
    return known


def doublings_part(subject: ProposalSubject, least: float) -> PartContent:
    """State up to how many workers each doubling is at least `least` times faster, with a table of all."""
    measured = doublings(subject)
    if not measured:
        return PartContent(missing=(DOUBLED,))

    headings = headings_of(
        "Workers:",
        "Times faster",
        f"At least {format_number(least, 1)}:",
    )
    rows = []
    for workers, factor in measured:
        doubling = f"{workers} → {2 * workers}"
        rows.append((doubling, with_interval(factor, 2), _is_enough(factor, least)))
    # The panel asks how far doubling pays: a later one that is fast enough again does not count.
    enough = []
    for workers, factor in measured:
        if (factor.value or 0.0) < least:
            break
        enough.append(2 * workers)
    text = f"Already the first doubling makes the training less than {least:g} times faster."
    if enough:
        text = f"Each doubling of the workers makes the training at least {least:g} times faster up to"
        text += f" {count_noun(enough[-1], 'worker')}"
        rest = measured[len(enough) :]
        if rest:
            workers, _ = rest[0]
            text += f"; the next, to {2 * workers}, does not."
        else:
            text += "."
    # The statement rests on the doublings that are fast enough and on the first that is not.
    decisive = rows[: len(enough) + 1]
    if any("not certain" in row[2] for row in decisive):
        text += " This is not certain: an interval contains the factor or is missing."
    caption = "Each doubling with the same work."
    table = Table(headings, tuple(rows), caption, name="doublings")
    return PartContent((Paragraph(text), table))


def _is_enough(factor: Estimate, least: float) -> str:
    """Return whether a factor reaches `least`, and whether its interval leaves that open."""
    answer = "no"
    if (factor.value or 0.0) >= least:
        answer = "yes"
    # Without an interval, of single runs, nothing is certain either.
    if factor.low is None or factor.high is None or factor.low < least <= factor.high:
        return f"{answer}, not certain"
    return answer


def weak_scaling_part(subject: ProposalSubject) -> PartContent:
    """State how much of its throughput a worker keeps when the batch grows with the workers, with a table."""
    points = weak_scaling(subject)
    if not points:
        return PartContent(missing=(GROWING,))
    last = points[-1]
    kept = with_interval(last.efficiency, 2)
    text = (
        f"With a batch that grows with the workers, each of {last.workers} workers keeps {kept} of its"
        " throughput."
    )
    digits = decimals([point.throughput.value or 0.0 for point in points])
    rows = []
    for point in points:
        batch = f"{point.global_batch:,}"
        throughput = with_interval(point.throughput, digits)
        efficiency = with_interval(point.efficiency, 2)
        rows.append((str(point.workers), batch, throughput, efficiency))
    headings = headings_of(
        "Workers",
        "Global batch",
        "Throughput, samples/s",
        "Weak-scaling efficiency",
    )
    table = Table(headings, tuple(rows), "Weak scaling.", name="weak-scaling")
    return PartContent((Paragraph(text), table))


def request_part(subject: ProposalSubject, panel: Panel) -> PartContent:
    """Return the request for resources, with its arithmetic."""
    request = resource_request(subject, panel)
    if isinstance(request, Missing):
        return PartContent(missing=(request,))
    return PartContent(request_blocks(request))


def environment_part(subject: ProposalSubject) -> PartContent:
    """Return the table of hardware and software."""
    table = environment_table(subject.findings.runs, "Hardware and software.")
    if table:
        return PartContent((table,))
    action = "Run the study with Scalestudy itself."
    return PartContent(missing=(Missing("no environment was recorded", action),))
