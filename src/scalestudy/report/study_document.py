"""The report as a document, for forms that are handed on: Markdown and LaTeX."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scalestudy.analysis.findings import Findings
from scalestudy.report.as_latex import latex
from scalestudy.report.as_markdown import markdown
from scalestudy.report.cards import cards
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
    drawings,
)
from scalestudy.report.environment import environments
from scalestudy.report.figure import Figure, first_of_groups
from scalestudy.report.figures import figures
from scalestudy.report.formats import Format, Medium
from scalestudy.report.notes import notes
from scalestudy.report.sections import sections
from scalestudy.report.time_and_cost import NAME as DECISIVE
from scalestudy.report.view import Cell, view
from scalestudy.report.write_document import write_document


def report_document(
    findings: Findings, drawn: Sequence[Figure] | None = None, told: Sequence[Section] | None = None
) -> Document:
    """The report: decision, key numbers, table, what is not settled, figures, sections, how it was measured.

    Last comes the environment.

    Args:
        findings: What to report.
        drawn: Its figures, where they are made already.
        told: Its sections, likewise.
    """
    advice, laid = findings.advice, view(findings)
    shown = first_of_groups(figures(findings) if drawn is None else drawn)
    cost = (Paragraph(advice.cost),) if advice.cost else ()
    decision = Section("Decision", (Paragraph(advice.headline), *cost, *_items(advice.sentences)))
    blocks: list[Block] = [decision, Section("Key numbers", (_key_numbers(findings),))]
    if laid.lines:
        first = tuple(Drawing(figure) for figure in shown if figure.name == DECISIVE)
        blocks.append(Section("Results", (_results(findings), *first)))
    if advice.open_questions:
        blocks.append(Section("Not settled", _items(advice.open_questions)))
    if laid.lines:
        others = tuple(Drawing(figure) for figure in shown if figure.name != DECISIVE)
        blocks.append(Section("Figures", others))
    blocks += sections(findings) if told is None else told
    if laid.lines:
        blocks.append(Folded("How this was measured", _items(notes(findings))))
    facts = tuple(environments(findings.runs))
    if facts:
        headings = (Heading("What", numeric=False), Heading("Recorded", numeric=False))
        blocks.append(Folded("Environment", (Table(headings, facts),)))
    return Document(findings.name, tuple(blocks), "A study of scaling")


def _items(lines: Collection[str]) -> tuple[Items, ...]:
    return (Items(tuple(lines)),) if lines else ()


def _key_numbers(findings: Findings) -> Table:
    rows = tuple((card.name, card.value, card.remark) for card in cards(findings))
    return Table((Heading("What", numeric=False), Heading("Value"), Heading("", numeric=False)), rows)


def _results(findings: Findings) -> Table:
    laid = view(findings)
    rows = tuple(tuple(_cell(cell) for cell in line.cells) for line in laid.lines)
    marked = tuple(
        (f"{row[0]} ←", *row[1:]) if line.chosen else row
        for row, line in zip(rows, laid.lines, strict=True)
    )  # fmt: skip
    chosen = any(line.chosen for line in laid.lines)
    caption = "With 95 % intervals where runs were repeated." + (" ← is advised." if chosen else "")
    return Table(laid.headings, marked, caption, laid.footnotes, name="results")


def _cell(cell: Cell) -> str:
    return f"{cell.with_interval} [{cell.note}]" if cell.note else cell.with_interval


def _form(render: Callable[[Document, Mapping[str, str]], str], name: str, file: str, ending: str) -> Format:
    def rendered(findings: Findings, medium: Medium) -> str:
        if medium.pictures is None:
            return render(report_document(findings), {})
        # Their pictures bear the titles already.
        drawn = [replace(picture.figure, title="") for picture in medium.pictures]
        made = report_document(findings, drawn, medium.sections)
        return render(made, {figure.name: f"{figure.name}.{ending}" for figure in drawings(made.blocks)})

    def written(findings: Findings, out: Path) -> None:
        write_document(report_document(findings), name, out)

    return Format(rendered, file, written)


MARKDOWN = _form(markdown, "markdown", "report.md", "svg")
LATEX = _form(latex, "latex", "report.tex", "pdf")
