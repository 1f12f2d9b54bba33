"""A panel's page: the statements that the study supports and, separately, what is missing."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.findings import Findings, read_study
from scalestudy.config.settings import PlanSettings
from scalestudy.features.proposal.facts import FACTS
from scalestudy.features.proposal.missing import CURVE, REPEATED, Missing
from scalestudy.features.proposal.panel import (
    Panel,
    find_panel,
    request_blocks,
    resource_request,
)
from scalestudy.features.proposal.subject import (
    ProposalSubject,
    RequestOptions,
    subject_of,
)
from scalestudy.features.proposal.table_columns import COLUMNS, unit_of
from scalestudy.features.proposal.weak_scaling import weak_scaling
from scalestudy.report.against_workers import efficiency, speedup
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
    headings_of,
)
from scalestudy.report.figure import Figure
from scalestudy.report.formats import to_json
from scalestudy.report.notes import environment_table
from scalestudy.report.number_format import decimals, format_number, with_interval
from scalestudy.report.time_and_cost import phases
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError
from scalestudy.util.text import count_noun

MISSING = "Missing for this panel"
NO_RUN = Missing(
    "no run has finished on cores or GPUs of its own", f"{CURVE} {REPEATED}"
)
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


class Gap(NamedTuple):
    """A requirement of the panel that the study does not meet."""

    asks: str
    missing: tuple[Missing, ...]


class ProposalPage(NamedTuple):
    """A page, and the gaps that it lists."""

    document: Document
    gaps: tuple[Gap, ...]


class PartContent(NamedTuple):
    """The blocks that a template function adds to the page, and what is missing for them."""

    blocks: Sequence[Block] = ()
    missing: Sequence[Missing] = ()


def propose(
    folder: StudyFolder,
    panel: str,
    options: RequestOptions,
    plan: PlanSettings | None = None,
) -> ProposalPage:
    """Return the page for a panel (its name or file) and a study, which need not be complete.

    The request is for the training that `plan` describes; by default, the study's plan.

    Raises:
        UserError: If the panel does not exist or is invalid, or `options` name a row that was not measured.
    """
    return compose(read_study(folder, plan=plan), find_panel(panel), options)


def compose(findings: Findings, panel: Panel, options: RequestOptions) -> ProposalPage:
    """Return the page for a panel.

    Raises:
        UserError: If `options` name a row that was not measured, or the panel an unknown column or figure.
    """
    subject = subject_of(findings, options)
    names = _names(subject, panel) if subject else {}
    gaps: list[Gap] = []
    blocks: list[Block] = []
    for title, parts in panel.sections():
        inner: list[Block] = []
        for asks, template in parts:
            if subject:
                content = _render(template, names)
            else:
                content = PartContent(missing=(NO_RUN,))
            inner += content.blocks
            if content.missing:
                gaps.append(Gap(asks, tuple(content.missing)))
        if inner:
            blocks.append(Section(title, tuple(inner)))
    if gaps:
        blocks.append(_missing(gaps))
    blocks.append(_sources(panel))
    document = Document(
        panel.title,
        tuple(blocks),
        f"{findings.name}, for {panel.panel}",
    )
    return ProposalPage(document, tuple(gaps))


def _sources(panel: Panel) -> Folded:
    lines = []
    for source in panel.sources:
        # `says` may be empty, and a line does not begin with a space.
        line = f"{source.says} {source.address} (read {source.read.isoformat()})"
        lines.append(line.strip())
    for sentence in panel.assumed:
        lines.append(f"Assumed: {sentence}")
    return Folded("Sources and assumptions", (Items(tuple(lines)),))


def _render(template: str, names: dict[str, Any]) -> PartContent:
    """Render a part of the page. Its text is left out if anything is missing for it."""
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    blocks: list[Block] = []
    missing: list[Missing] = []

    def collect(value: object) -> object:
        """Collect blocks and missing facts, which are not part of the text."""
        if isinstance(value, PartContent):
            blocks.extend(value.blocks)
            missing.extend(value.missing)
        elif isinstance(value, Missing):
            missing.append(value)
        elif value is None:
            missing.append(Missing("it is unknown in this study", CURVE))
        else:
            return value
        return ""

    environment = SandboxedEnvironment(undefined=StrictUndefined, finalize=collect)
    try:
        text = environment.from_string(template).render(names).strip()
    except TemplateError as error:
        raise UserError(
            "known names in the panel file",
            str(error),
            "Correct the panel file.",
        ) from None
    if text and not missing:
        blocks.insert(0, Paragraph(text))
    return PartContent(blocks, missing)


def _names(subject: ProposalSubject, panel: Panel) -> dict[str, Any]:
    """Return the names that templates may use: facts, functions, and `study`, the JSON report."""
    facts = {name: fact(subject) for name, fact in FACTS.items()}
    return facts | {
        "study": json.loads(to_json(subject.findings)),
        "table": partial(_table, subject),
        "figure": partial(_figure, subject),
        "doublings": partial(_doublings, subject),
        "weak_scaling": partial(_weak_scaling, subject),
        "request": partial(_request, subject, panel),
        "environment": partial(_environment, subject),
    }


def _table(subject: ProposalSubject, *names: str, caption: str = "") -> PartContent:
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
        details = subject.row.key.details
        series = subject.row.strategy + (f" ({details})" if details else "")
        caption = f"{series}, by number of workers."
    rows = tuple(zip(*filled, strict=True))
    return PartContent((Table(tuple(headings), rows, caption),), missing)


def _figure(subject: ProposalSubject, name: str) -> PartContent:
    from altair.utils.schemapi import debug_mode

    _check([name], FIGURES, "figure")
    figures: list[Figure] = []
    if len(subject.rows) > 1:
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
    rows = {row.workers: row for row in subject.rows}
    measures = subject.findings.measures
    factors: dict[int, Estimate] = {}
    for row in subject.rows:
        double = rows.get(2 * row.workers)
        if double is None:
            continue
        samples = row.samples_processed
        if samples is not None and samples == double.samples_processed:
            factors[row.workers] = measures.training_seconds.ratio(row.key, double.key)
        elif measures.rate.values.get(row.key) and measures.rate.values.get(double.key):
            factors[row.workers] = measures.rate.ratio(double.key, row.key)
    known = []
    for workers, factor in factors.items():
        if factor.value is not None:
            known.append((workers, factor))
    return known


def _doublings(subject: ProposalSubject, least: float) -> PartContent:
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
    for n, factor in measured:
        doubling = f"{n} → {2 * n}"
        rows.append((doubling, with_interval(factor, 2), _is_enough(factor, least)))
    # The panel asks how far doubling pays: a later one that is fast enough again does not count.
    enough = []
    for n, factor in measured:
        if (factor.value or 0.0) < least:
            break
        enough.append(2 * n)
    text = f"Already the first doubling makes the training less than {least:g} times faster."
    if enough:
        rest = measured[len(enough) :]
        text = f"Each doubling of the workers makes the training at least {least:g} times faster up to"
        text += f" {count_noun(enough[-1], 'worker')}"
        if rest:
            text += f"; the next, to {2 * rest[0][0]}, does not."
        else:
            text += "."
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
    if factor.low is None or factor.high is None or factor.low < least <= factor.high:
        return f"{answer}, not certain"
    return answer


def _weak_scaling(subject: ProposalSubject) -> PartContent:
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


def _request(subject: ProposalSubject, panel: Panel) -> PartContent:
    request = resource_request(subject, panel)
    if isinstance(request, Missing):
        return PartContent(missing=(request,))
    return PartContent(request_blocks(request))


def _environment(subject: ProposalSubject) -> PartContent:
    table = environment_table(subject.findings.runs, "Hardware and software.")
    if table:
        return PartContent((table,))
    action = "Run the study with Scalestudy itself."
    return PartContent(missing=(Missing("no environment was recorded", action),))


def _missing(gaps: Sequence[Gap]) -> Section:
    """Return the section on what is missing and what to run, which users remove before submitting."""
    text = (
        "The panel asks for more than this study supports. This part is for you: remove it before"
        " you submit the page. Running the study again runs only its new points."
    )
    sentences = []
    for gap in gaps:
        # A part often lacks several facts for one reason, which is said once.
        reasons: dict[str, None] = {}
        remedies: dict[str, None] = {}
        for missing in gap.missing:
            reasons[missing.why] = None
            remedies[missing.remedy] = None
        why = "; ".join(reasons)
        sentences.append(" ".join([f"{gap.asks}: {why}.", *remedies]))
    return Section(MISSING, (Paragraph(text), Items(tuple(sentences))), name="missing")
