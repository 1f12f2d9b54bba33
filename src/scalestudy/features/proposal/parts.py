"""The parts of a panel's page: each as blocks, or as what is missing to write it."""

from collections.abc import Callable
from dataclasses import dataclass

from scalestudy.features.proposal.columns import COLUMNS, table_of
from scalestudy.features.proposal.doubling_blocks import doubling_blocks
from scalestudy.features.proposal.doublings import doublings
from scalestudy.features.proposal.facts import filled
from scalestudy.features.proposal.figures import drawn
from scalestudy.features.proposal.gpu_table import gpu_table
from scalestudy.features.proposal.panel import KINDS, Panel, Part
from scalestudy.features.proposal.remedy import Remedy
from scalestudy.features.proposal.request import request_blocks, request_of
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.words import Missing
from scalestudy.report.document import Block, Drawing, Heading, Paragraph, Table
from scalestudy.report.environment import environments


@dataclass(frozen=True)
class Made:
    """A part as it stands on the page, and what it lacks."""

    blocks: tuple[Block, ...] = ()
    missing: tuple[Missing, ...] = ()


def make(part: Part, subject: Subject, panel: Panel) -> Made:
    """A part of the page; without blocks where the study does not support it."""
    lacking = filled("", subject, part.needs)
    if isinstance(lacking, list):
        return Made(missing=tuple(lacking))
    kind = next(name for name in KINDS if getattr(part, name))
    found = _MAKERS[kind](part, subject, panel)
    if isinstance(found, Missing):
        return Made(missing=(found,))
    return found if isinstance(found, Made) else Made(found)


Answer = Made | tuple[Block, ...] | Missing


def _text(part: Part, subject: Subject, panel: Panel) -> Answer:
    told = filled(part.text or "", subject)
    return (Paragraph(told),) if isinstance(told, str) else Made(missing=tuple(told))


def _table(part: Part, subject: Subject, panel: Panel) -> Answer:
    headings, rows, blank = table_of(part.table, subject)
    missing = tuple(
        Missing(f"nothing is known for the column `{name}`", COLUMNS[name].remedy) for name in blank
    )
    if len(headings) < 2:
        return Made(missing=missing)
    details = f" ({subject.row.key.details})" if subject.row.key.details else ""
    caption = part.caption or f"{subject.row.strategy}{details}, by number of workers."
    return Made((Table(tuple(headings), tuple(map(tuple, rows)), caption),), missing)


def _figure(part: Part, subject: Subject, panel: Panel) -> Answer:
    name = part.figure or ""
    figure = drawn(name, subject.findings) if len(subject.rows) > 1 else None
    if figure is None:
        return Missing(f"there is nothing to draw in the figure `{name}`", Remedy(workers=(1, 2, 4)))
    return (Drawing(figure),)


def _doublings(part: Part, subject: Subject, panel: Panel) -> Answer:
    return doubling_blocks(doublings(subject), part.doublings or 1.0, subject)


def _gpus(part: Part, subject: Subject, panel: Panel) -> Answer:
    table = gpu_table(subject)
    return table if isinstance(table, Missing) else (table,)


def _environment(part: Part, subject: Subject, panel: Panel) -> Answer:
    rows = tuple(environments(subject.findings.runs))
    if not rows:
        return Missing("no environment was recorded", Remedy("Run the study with Scalestudy itself."))
    headings = (Heading("What", numeric=False), Heading("Recorded", numeric=False))
    return (Table(headings, rows, "Hardware and software.", name="environment"),)


def _request(part: Part, subject: Subject, panel: Panel) -> Answer:
    request = request_of(subject, panel)
    return request if isinstance(request, Missing) else request_blocks(request)


_MAKERS: dict[str, Callable[[Part, Subject, Panel], Answer]] = {
    "text": _text, "table": _table, "figure": _figure, "doublings": _doublings, "request": _request,
    "gpus": _gpus, "environment": _environment,
}  # fmt: skip
