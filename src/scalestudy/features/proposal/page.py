"""A panel's page: what the study supports, and apart from it what it does not, and what to run."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.read import read_study
from scalestudy.features.proposal.attempts import Work, work_of
from scalestudy.features.proposal.columns import CURVE, OURS, REPEATED, Missing, gpu_table, table_of
from scalestudy.features.proposal.doublings import doubling_blocks
from scalestudy.features.proposal.facts import FACTS, Fact
from scalestudy.features.proposal.panel import FIGURES, NAMED, Panel, PanelPart, find_panel
from scalestudy.features.proposal.request import request_blocks, request_of
from scalestudy.features.proposal.subject import ProposalSubject, RequestOptions, subject_of
from scalestudy.launch.status import study_status
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
from scalestudy.report.environment import environments
from scalestudy.report.figure import Figure
from scalestudy.study.store import StudyFolder

MISSING = "Missing for this panel"
NO_RUN = Missing("no run has finished", f"{CURVE} {REPEATED}")
OWN_CORES = "Run it where each worker has cores or a GPU of its own: its times say nothing."


@dataclass(frozen=True)
class Gap:
    """Something that the panel asks for and the study does not know."""

    asks: str
    missing: tuple[Missing, ...]


@dataclass(frozen=True)
class ProposalPage:
    """A page, and the gaps that stand on it, too."""

    document: Document
    gaps: tuple[Gap, ...]


def propose(folder: StudyFolder, panel: str, options: RequestOptions) -> ProposalPage:
    """The page that a panel asks for, of a study in whatever state it is.

    Args:
        folder: The study.
        panel: Name of a panel, or a file of one.
        options: What is requested.

    Raises:
        UserError: If there is no such panel, something in it is not right, or `options` names what was not
            measured.
    """
    profile, overview = find_panel(panel), study_status(folder)
    return compose(read_study(folder, overview=overview), profile, options, work_of(folder, overview))


def compose(findings: Findings, panel: Panel, options: RequestOptions, work: Work) -> ProposalPage:
    """The page that a panel asks for.

    Args:
        findings: The study.
        panel: The panel's profile.
        options: What is requested.
        work: What the study's runs took, failed ones included.

    Raises:
        UserError: If `options` names what was not measured.
    """
    subject = subject_of(findings, options, work)
    gaps: list[Gap] = []
    blocks: list[Block] = []
    judged = False
    for section in panel.sections:
        inner: list[Block] = []
        for part in section.parts:
            content, missing = _part(part, subject, panel) if subject else ((), (NO_RUN,))
            inner += content
            judged |= bool(content) and "{verdict}" in (part.text or "")
            if missing:
                asked = part.asks or part.caption or part.text or section.title
                gaps.append(Gap(asked.rstrip("."), tuple(missing)))
        blocks += [Section(section.title, tuple(inner))] if inner else []
    if subject and not judged:
        blocks.append(Section("Quality", (Paragraph(_quality(subject)),)))
    gaps += _left_out(subject) if subject else []
    blocks += [_missing(gaps)] if gaps else []
    sources = [f"{source.says} {source.address} (read {source.read.isoformat()})" for source in panel.sources]
    assumed = [f"Assumed: {sentence}" for sentence in panel.assumed]
    blocks.append(Folded("What this page goes by", (Items((*map(str.strip, sources), *assumed)),)))
    return ProposalPage(
        Document(panel.title, tuple(blocks), f"{findings.name}, for {panel.panel}"), tuple(gaps)
    )


Content = tuple[Sequence[Block], Sequence[Missing]]


def _part(part: PanelPart, subject: ProposalSubject, panel: Panel) -> Content:
    """A part as it stands on the page, and what it lacks; no blocks where the study does not support it."""
    facts: dict[str, Fact] = {name: FACTS[name](subject) for name in NAMED.findall(part.text or "")}
    missing = [fact for fact in facts.values() if isinstance(fact, Missing)]
    if missing:
        return (), missing
    result: Sequence[Block] | Missing
    match part.kind:
        case "text":
            result = (Paragraph(NAMED.sub(lambda name: str(facts[name[1]]), part.text or "")),)
        case "table":
            details = f" ({subject.row.key.details})" if subject.row.key.details else ""
            caption = part.caption or f"{subject.row.strategy}{details}, by number of workers."
            table, missing = table_of(part.table, subject, caption)
            return (table,) if len(table.headings) > 1 else (), missing
        case "figure":
            figure = drawn(part.figure or "", subject.findings) if len(subject.rows) > 1 else None
            why = f"there is nothing to draw in the figure `{part.figure}`"
            result = (Drawing(figure),) if figure else Missing(why, CURVE)
        case "doublings":
            result = doubling_blocks(subject, part.doublings or 1.0)
        case "gpus":
            gpus = gpu_table(subject)
            result = gpus if isinstance(gpus, Missing) else (gpus,)
        case "environment":
            rows = tuple(environments(subject.findings.runs))
            headings = (Heading("What", numeric=False), Heading("Recorded", numeric=False))
            environment = Table(headings, rows, "Hardware and software.", name="environment")
            result = (environment,) if rows else Missing("no environment was recorded", OURS)
        case _:
            request = request_of(subject, panel)
            result = request if isinstance(request, Missing) else request_blocks(request)
    return ((), (result,)) if isinstance(result, Missing) else (result, ())


def drawn(name: str, findings: Findings) -> Figure | None:
    """The report's figure of this name; None where there is nothing to draw."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # a chart is held against its schema by tests, which takes longer than to make it
        return next((figure for figure in FIGURES[name](findings) if figure.name == name), None)


def _quality(subject: ProposalSubject) -> str:
    """What is known of the quality of what is requested: on every page, asked for or not."""
    quality, verdict = FACTS["quality"](subject), subject.verdict
    value = f"{quality} on {FACTS['workers'](subject)}" if isinstance(quality, str) else "Of unknown quality"
    against = f" (against {verdict.reference.label})" if verdict.reference else ""
    return f"{value}: {verdict.sentence}{against}."


def _left_out(subject: ProposalSubject) -> list[Gap]:
    """Rows of the series that is requested whose times do not count."""
    series = (subject.row.strategy, subject.row.key.variant)
    return [
        Gap(
            f"{row.key.label.capitalize()}, which is left out",
            (Missing(f"oversubscribed: {row.oversubscribed}", OWN_CORES),),
        )
        for row in subject.findings.rows
        if row.oversubscribed and row not in subject.rows and (row.strategy, row.key.variant) == series
    ]


def _missing(gaps: Sequence[Gap]) -> Section:
    """What is missing and what to run; to be taken off before the page is handed in."""
    text = (
        "The panel asks for more than this study supports. This part is for you: take it off the page before"
        " you hand it in. A study that is run again runs only what is new in its file."
    )
    return Section(MISSING, (Paragraph(text), Items(tuple(map(_sentence, gaps)))), name="missing")


def _sentence(gap: Gap) -> str:
    why = "; ".join(dict.fromkeys(missing.why for missing in gap.missing))
    remedies = dict.fromkeys(missing.remedy for missing in gap.missing)
    return " ".join([f"{gap.asks}: {why}.", *remedies])
