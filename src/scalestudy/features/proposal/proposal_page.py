"""A panel's page: the statements that the study supports and, separately, what is missing."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from scalestudy.analysis.findings import Findings, read_study
from scalestudy.config.settings import PlanSettings
from scalestudy.features.proposal.facts import FACTS
from scalestudy.features.proposal.missing import CURVE, REPEATED, Missing
from scalestudy.features.proposal.page_parts import (
    PartContent,
    doublings_part,
    environment_part,
    figure_part,
    request_part,
    table_part,
    weak_scaling_part,
)
from scalestudy.features.proposal.panel import Panel, find_panel
from scalestudy.features.proposal.subject import (
    ProposalSubject,
    RequestOptions,
    subject_of,
)
from scalestudy.report.document import (
    Block,
    Document,
    Folded,
    Items,
    Paragraph,
    Section,
)
from scalestudy.report.formats import to_json
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError

MISSING = "Missing for this panel"
NO_RUN = Missing(
    "no run has finished on cores or GPUs of its own",
    f"{CURVE} {REPEATED}",
)


class Gap(NamedTuple):
    """A requirement of the panel that the study does not meet."""

    asks: str
    missing: tuple[Missing, ...]


class ProposalPage(NamedTuple):
    """A page, and the gaps that it lists."""

    document: Document
    gaps: tuple[Gap, ...]


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
    names: dict[str, Any] = {}
    if subject:
        names = _names(subject, panel)
    gaps: list[Gap] = []
    blocks: list[Block] = []
    for title, parts in panel.sections():
        inner: list[Block] = []
        # Without a finished run, the page still lists all that the panel asks for.
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

    # A panel's file may come from anyone: its template reaches neither files nor modules.
    environment = SandboxedEnvironment(undefined=StrictUndefined, finalize=collect)
    try:
        text = environment.from_string(template).render(names).strip()
    except TemplateError as error:
        raise UserError(
            "known names in the panel file",
            str(error),
            "Correct the panel file.",
        ) from None
    # A sentence is whole or not there: one with a gap would be submitted.
    if text and not missing:
        blocks.insert(0, Paragraph(text))
    return PartContent(blocks, missing)


def _names(subject: ProposalSubject, panel: Panel) -> dict[str, Any]:
    """Return the names that templates may use: facts, functions, and `study`, the JSON report."""
    facts = {}
    for name, fact in FACTS.items():
        facts[name] = fact(subject)
    return facts | {
        "study": json.loads(to_json(subject.findings)),
        "table": partial(table_part, subject),
        "figure": partial(figure_part, subject),
        "doublings": partial(doublings_part, subject),
        "weak_scaling": partial(weak_scaling_part, subject),
        "request": partial(request_part, subject, panel),
        "environment": partial(environment_part, subject),
    }


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
