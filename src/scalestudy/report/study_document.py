"""The report of a study as a document, for a page, Markdown, LaTeX and a terminal."""

from collections.abc import Collection

from scalestudy.analysis.findings import Findings
from scalestudy.report.details import all_metrics, every_run, key_numbers, reasons, samples_of
from scalestudy.report.document import (
    Block,
    Document,
    Folded,
    Items,
    Paragraph,
    Section,
)
from scalestudy.report.environment import environment_table
from scalestudy.report.figures import figures, places
from scalestudy.report.formats import Format, Medium
from scalestudy.report.notes import notes
from scalestudy.report.results import results_table
from scalestudy.report.sections import sections
from scalestudy.report.time_and_cost import NAME as DECISIVE
from scalestudy.report.write_document import beside, render_document
from scalestudy.study.point import REPEATS


def report_document(findings: Findings, study_link: str = "..", *, drawn: bool = True) -> Document:
    """The report: decision, results, open questions, figures, sections, and how it was measured.

    Args:
        findings: The analysis to report.
        study_link: Path from the page's folder to the study's, for links to runs.
        drawn: Whether to include figures; a terminal shows none.
    """
    advice = findings.advice
    cost = [Paragraph(advice.cost)] if advice.cost else []
    decision: tuple[Block, ...] = (Paragraph(advice.headline), *cost, *_items(advice.sentences))
    blocks: list[Block] = [Section("Decision", decision, style="advice"), key_numbers(findings)]
    shown = places(figures(findings)) if drawn else []
    if findings.rows:
        first = [drawing for drawing in shown if drawing.figure.name == DECISIVE]
        blocks.append(
            Section("Results", (results_table(findings), Paragraph(_small_print(findings)), *first))
        )
    if unsettled := [*advice.open_questions, *reasons(findings)]:
        blocks.append(Section("Not settled", _items(unsettled), "open", "open"))
    if tables := all_metrics(findings):
        title = "All metrics, by class" if len(tables) > 1 else "All metrics"
        blocks.append(Folded(title, tuple(tables), "metrics", page_only=True))
    others = tuple(drawing for drawing in shown if drawing.figure.name != DECISIVE)
    if others:
        blocks.append(Section("Figures", others, style="figures"))
    blocks += sections(findings)
    if samples := samples_of(findings):
        blocks.append(samples)
    if findings.rows:
        blocks.append(Section("How this was measured", _items(notes(findings)), "measured"))
    if environment := environment_table(findings.runs):
        blocks.append(Folded("Environment", (environment,)))
    if runs := every_run(findings, study_link):
        blocks.append(runs)
    return Document(findings.name, tuple(blocks), "Scaling study", live=True)


def _items(lines: Collection[str]) -> tuple[Items, ...]:
    return (Items(tuple(lines)),) if lines else ()


def _small_print(findings: Findings) -> str:
    """Meaning of the intervals and of the mark in the table."""
    repeated = any(row.runs > 1 for row in findings.rows)
    splits = any(run.result.swept.keys() & REPEATS for run in findings.runs)
    over = "seeds and splits" if splits else "seeds"
    text = (
        f"Intervals are 95 % confidence intervals over {over}."
        if repeated
        else "One run each, so there are no intervals: chance differences are not visible."
    )
    return f"{text} The advised row is marked." if findings.advice.choice else text


def _form(name: str, file: str) -> Format:
    def rendered(findings: Findings, medium: Medium) -> str:
        document = medium.document or report_document(findings)
        return render_document(document, name, beside(medium.pictures, name), medium.pictures)

    return Format(rendered, file)


HTML, MARKDOWN = _form("html", "report.html"), _form("markdown", "report.md")
LATEX = _form("latex", "report.tex")
