"""The report of a study as a document, for a page, Markdown and a terminal, and its files.

In a terminal it is the decision in at most 30 lines, or everything on the page.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.analysis.findings import Findings, read_study
from scalestudy.config.point import REPEATS
from scalestudy.report.against_workers import efficiency, quality, speedup
from scalestudy.report.details import all_metrics, every_run, key_numbers, reasons, samples_of
from scalestudy.report.document import (
    Block,
    Document,
    Drawing,
    Folded,
    Items,
    Paragraph,
    Section,
    drawings,
)
from scalestudy.report.figure import Figure, still
from scalestudy.report.formats import FORMATS, Format, Medium, sections
from scalestudy.report.loss_curves import losses
from scalestudy.report.notes import environment_table, notes
from scalestudy.report.results import results_table
from scalestudy.report.time_and_cost import NAME as DECISIVE
from scalestudy.report.time_and_cost import phases, time_and_cost
from scalestudy.report.write_document import beside, render_document
from scalestudy.util.files import refuse_target, write_atomically

if TYPE_CHECKING:
    from scalestudy.store.study_folder import StudyFolder
from dataclasses import replace
from shutil import get_terminal_size

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalestudy.report.as_terminal import console_of, laid_table, print_blocks, wrap


def report_document(findings: Findings, study_link: str = "..", *, drawn: bool = True) -> Document:
    """The report: decision, results, open questions, figures, sections, and how it was measured.

    `study_link` is the path from the page's folder to the study's, for links to runs. A terminal shows no
    figures: they need not be `drawn`.
    """
    advice = findings.advice
    cost = [Paragraph(advice.cost)] if advice.cost else []
    decision: tuple[Block, ...] = (Paragraph(advice.headline), *cost, *_items(advice.sentences))
    blocks: list[Block] = [Section("Decision", decision, style="advice"), key_numbers(findings)]
    shown = places(figures(findings)) if drawn else []
    if findings.rows:
        first = [drawing for drawing in shown if drawing.figure.name == DECISIVE]
        blocks.append(
            Section("Results", (*first, results_table(findings), Paragraph(_small_print(findings))))
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


MAKERS: tuple[Callable[[Findings], list[Figure]], ...] = (
    time_and_cost,
    speedup,
    quality,
    efficiency,
    phases,
    losses,
)


def figures(findings: Findings) -> list[Figure]:
    """All figures for which the finished runs have data, those of a group one after another."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        return [figure for make in MAKERS for figure in make(findings)]


def places(made: Sequence[Figure]) -> list[Drawing]:
    """Group the figures by place, each with the others that can be selected there."""
    groups: dict[str, list[Figure]] = {}
    for figure in made:
        groups.setdefault(figure.group or figure.name, []).append(figure)
    return [Drawing(first, tuple(others)) for first, *others in groups.values()]


PAGE = "html"


@dataclass(frozen=True)
class ReportPaths:
    """Files of a written report: the file of each format by name, and the figures."""

    files: Mapping[str, Path]
    figures: tuple[Path, ...]

    @property
    def page(self) -> Path:
        """The page to open in a browser."""
        return self.files[PAGE]


def write_report(
    folder: "StudyFolder", out: Path | None = None, *, findings: Findings | None = None
) -> ReportPaths:
    """Write `report.html`, `table.csv`, `table.json` and other formats' files; figures as PNG, SVG and PDF.

    Of figures that share one place, only the first gets files; the page and notebooks have the others. `out`
    is by default the folder `report` in the study's folder. Without `findings`, the folder is read and
    analysed.

    Raises:
        UserError: `out` is among the records of a study.
    """
    findings = findings or read_study(folder)
    out = Path(folder.path) / "report" if out is None else Path(out)
    refuse_target(out)
    out.mkdir(parents=True, exist_ok=True)
    link = Path(os.path.relpath(Path(folder.path).resolve(), out.resolve())).as_posix()
    document = report_document(findings, link)
    pictures = {drawing.figure.name: still(drawing.figure) for drawing in drawings(document.blocks)}
    drawn = []
    for name, picture in pictures.items():
        for ending, content in (("png", picture.png), ("svg", picture.svg), ("pdf", picture.pdf)):
            drawn.append(out / f"{name}.{ending}")
            write_atomically(drawn[-1], content)
    files = {}
    for name in FORMATS.names():
        form = FORMATS.get(name)
        if form.file is not None:
            files[name] = out / form.file
            write_atomically(files[name], form.render(findings, Medium(document=document, pictures=pictures)))
    return ReportPaths(files, tuple(drawn))


MOST_LINES = 30
"""Largest number of lines of a brief report."""
PASSED_OVER = "Faster but not chosen"
"""Start of sentences of the advice on rows with, mostly, a worse quality."""
LEAST_ROWS = 1
"""Rows that are printed although sentences of the advice do not fit then."""
HEAD = 2
"""Minimum lines of a table's heading."""
MOST_QUESTIONS, MOST_QUESTION_LINES = 3, 9
"""Largest number of open questions in a brief report, and of their lines."""


def render_text(
    findings: Findings, width: int = 120, colour: bool = False, verbose: bool = False, page: str | None = None
) -> str:
    """The decision, or with `verbose` everything on the page; `page` is its path, for the last line."""
    console, stream = console_of(width, colour)
    if verbose:
        console.print(Text(findings.name, style="bold"))
        print_blocks(report_document(findings, drawn=False).blocks, console)
    else:
        for part in _brief(findings, console):
            console.print(part)
        console.print(Text("Details: --verbose."))
    if page:  # on one line, so that it can be copied
        console.print(f"Page: {page}", markup=False, highlight=False, soft_wrap=True)
    return stream.getvalue()


def _brief(findings: Findings, console: Console) -> list[Text | Table]:
    """The decision: table, advice, cost and open questions, two lines short of `MOST_LINES`.

    Rows that do not fit are left out. Sentences of the advice follow if there is room.
    """

    def text(words: str, style: str = "") -> Text:
        return wrap(words, console, "  ", style)

    def height(*parts: Text | Table) -> int:
        return sum(len(console.render_lines(part, pad=False)) for part in parts)

    advice = findings.advice
    name = Text(findings.name, style="bold")
    headline = text(advice.headline, "bold green" if advice.choice else "bold yellow")
    decided = [Text(""), headline, *([text(advice.cost)] if advice.cost else [])]
    questions: list[Text] = []
    room = MOST_QUESTION_LINES
    # If nothing has finished, only the reasons are worth printing.
    open_questions = [*advice.open_questions, *([] if findings.rows else reasons(findings))]
    most = MOST_QUESTIONS if findings.rows else 2 * MOST_QUESTIONS
    for question in map(text, (f"? {question}" for question in open_questions[:most])):
        if (room := room - height(question)) >= 0:
            questions.append(question)
    if left := len(open_questions) - len(questions):
        questions.append(text(f"? {left} more open {'questions' if left > 1 else 'question'}."))
    room = MOST_LINES - 2 - height(name, *decided, *questions)
    sentences = [text(f"- {sentence}") for sentence in advice.sentences]
    first = {0, next((i for i, words in enumerate(advice.sentences) if words.startswith(PASSED_OVER)), 0)}
    decisive = height(*(sentences[place] for place in sorted(first) if sentences))
    table: list[Text | Table] = []
    for most in range(room - HEAD if findings.rows else 0, 0, -1):
        table = _brief_table(findings, console, most)
        if height(*table) <= room - (decisive if most > LEAST_ROWS else 0):
            break
    room -= height(*table)
    printed = []
    for place in sorted(range(len(sentences)), key=lambda place: (place not in first, place)):
        if (left := room - height(sentences[place])) >= 0:
            room = left
            printed.append(place)
    return [name, *table, *decided, *(sentences[place] for place in sorted(printed)), *questions]


def _brief_table(findings: Findings, console: Console, most: int) -> list[Text | Table]:
    """The table; if it is too long, the recommended row, those on the Pareto front, and the first ones."""
    table, rows = results_table(findings, brief=True), findings.rows

    def rank(place: int) -> tuple[bool, bool, int]:
        price = rows[place].price
        return place != table.chosen, price is None or not price.on_front, place

    places = sorted(sorted(range(len(rows)), key=rank)[:most])
    chosen = places.index(table.chosen) if table.chosen is not None else None
    table = replace(table, rows=tuple(table.rows[place] for place in places), chosen=chosen)
    left = len(rows) - len(places)
    more = [Text(f"{left:,} more {'rows' if left > 1 else 'row'}: --verbose, or the page.")] * bool(left)
    laid, dropped = laid_table(table, console, brief=True)
    narrow = [wrap(f"Columns that need more width: {', '.join(dropped)}.", console)] * bool(dropped)
    return [laid, *more, *narrow]


def _render(findings: Findings, medium: Medium) -> str:
    width = medium.width or get_terminal_size((120, 40)).columns
    return render_text(findings, width, medium.colour, medium.verbose, medium.page)


FORMAT = Format(_render)
