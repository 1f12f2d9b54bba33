"""A panel's page: what the study supports, and apart from it what it does not, and what to run."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.features.proposal.attempts import Work
from scalestudy.features.proposal.facts import filled
from scalestudy.features.proposal.panel import Panel, Part
from scalestudy.features.proposal.parts import Made, make
from scalestudy.features.proposal.remedy import Remedy, other_study, sweep_lines
from scalestudy.features.proposal.subject import Ask, Subject, subject_of
from scalestudy.features.proposal.words import Missing
from scalestudy.report.document import Block, Code, Document, Folded, Items, Paragraph, Section

MISSING = "Missing for this panel"
NOTHING = Made(missing=(Missing("no run has finished", Remedy(workers=(1, 2, 4), seeds=3)),))

OWN_CORES = Remedy("Run it where each worker has cores or a GPU of its own: its times say nothing.")


@dataclass(frozen=True)
class Gap:
    """Something that the panel asks for and the study does not know."""

    asks: str
    missing: tuple[Missing, ...]


@dataclass(frozen=True)
class Statement:
    """A page, and what is missing on it.

    Attributes:
        document: The page.
        gaps: What the panel asks for and the study does not support; they are on the page, too.
    """

    document: Document
    gaps: tuple[Gap, ...]


def statement(findings: Findings, panel: Panel, ask: Ask, work: Work | None = None) -> Statement:
    """The page that a panel asks for.

    Args:
        findings: The study.
        panel: The panel's profile.
        ask: What is asked for.
        work: What the study's runs took, failed ones included; None where that is not known.

    Raises:
        UserError: If `ask` names what was not measured.
    """
    subject = subject_of(findings, ask, work)
    gaps: list[Gap] = []
    blocks: list[Block] = []
    judged = False
    for section in panel.sections:
        made = [(part, make(part, subject, panel) if subject else NOTHING) for part in section.parts]
        gaps += [Gap(_asked(part, section.title), each.missing) for part, each in made if each.missing]
        inner = tuple(block for _, each in made for block in each.blocks)
        blocks += [Section(section.title, inner)] if inner else []
        judged |= any(made_of.blocks and "{verdict}" in (part.text or "") for part, made_of in made)
    if subject and not judged:
        blocks.append(Section("Quality", (Paragraph(_quality(subject)),)))
    gaps += _left_out(subject) if subject else []
    blocks += [_missing(gaps, findings)] if gaps else []
    blocks.append(_sources(panel))
    document = Document(panel.title, tuple(blocks), f"{findings.name}, for {panel.panel}")
    return Statement(document, tuple(gaps))


def _quality(subject: Subject) -> str:
    """What is known of the quality of what is asked for: on every page, asked for or not."""
    told, verdict = filled("{quality} on {workers}", subject), subject.verdict
    value = told if isinstance(told, str) else "Of unknown quality"
    against = f" (against {verdict.reference.label})" if verdict.reference else ""
    return f"{value}: {verdict.sentence}{against}."


def _left_out(subject: Subject) -> list[Gap]:
    """What was measured of the series that is asked for, and is no measurement of it."""
    series = (subject.row.strategy, subject.row.key.variant)
    return [
        Gap(
            f"{row.key.label.capitalize()}, which is left out",
            (Missing(f"oversubscribed: {row.oversubscribed}", OWN_CORES),),
        )
        for row in subject.findings.rows
        if row.oversubscribed and row not in subject.rows and (row.strategy, row.key.variant) == series
    ]


def _asked(part: Part, title: str) -> str:
    return (part.asks or part.caption or part.text or title).rstrip(".")


def _missing(gaps: Sequence[Gap], findings: Findings) -> Section:
    """What is missing and what to run; to be taken off before the page is handed in."""
    remedies = [missing.remedy for gap in gaps for missing in gap.missing]
    workers = {point.workers for point in findings.planned} | {row.workers for row in findings.rows}
    seeds = {point.seed for point in findings.planned}
    seeds |= {seed for row in findings.rows for seed in row.seeds if seed is not None}
    blocks: list[Block] = [
        Paragraph(
            "The panel asks for more than this study supports. This part is for you: take it off the page"
            " before you hand it in."
        ),
        Items(tuple(_sentence(gap) for gap in gaps)),
    ]
    lines = sweep_lines(remedies, sorted(workers), sorted(seeds))
    if lines:
        words = "Change these lines of the study file and run it again; what is done stays done:"
        blocks += [Paragraph(words), Code(lines, "toml")]
    other = other_study(remedies)
    if other:
        words = "Run a copy of the study file with these settings, as a study of its own:"
        blocks += [Paragraph(words), Code(other, "toml")]
    return Section(MISSING, tuple(blocks), name="missing")


def _sentence(gap: Gap) -> str:
    why = "; ".join(dict.fromkeys(missing.why for missing in gap.missing))
    words = dict.fromkeys(missing.remedy.words for missing in gap.missing if missing.remedy.words)
    return " ".join([f"{gap.asks}: {why}.", *words])


def _sources(panel: Panel) -> Folded:
    """Where the profile comes from, so that a reader can see whether it is still right."""
    told = [
        f"{source.says} {source.address} (read {source.read.isoformat()})".strip() for source in panel.sources
    ]
    return Folded(
        "What this page goes by", (Items((*told, *(f"Assumed: {each}" for each in panel.assumed))),)
    )
