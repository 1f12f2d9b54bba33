"""The report of a study as a document, for a page, Markdown and a terminal, and its files.

In a terminal it is the decision, or everything on the page.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalestudy.analysis.findings import Findings, read_study
from scalestudy.config.point import REPEATS
from scalestudy.report.against_workers import efficiency, quality, speedup
from scalestudy.report.as_terminal import console_of, laid_table, print_blocks, wrap
from scalestudy.report.details import all_metrics, every_run, reasons, sample_gallery
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
from scalestudy.report.formats import sections, to_csv, to_json
from scalestudy.report.loss_curves import losses
from scalestudy.report.notes import environment_table, notes
from scalestudy.report.results import results_table
from scalestudy.report.studied import study_in_folder, title_of, what_was_studied
from scalestudy.report.time_and_cost import NAME as DECISIVE
from scalestudy.report.time_and_cost import phases, time_and_cost
from scalestudy.report.write_document import html, markdown
from scalestudy.util.files import make_inside, write_atomically
from scalestudy.util.targets import REPORT, refuse_target

if TYPE_CHECKING:
    from scalestudy.store.study_folder import StudyFolder
FIRST = ("speedup", "quality")
"""Names of the figures below the decision."""
MAKERS: tuple[Callable[[Findings], list[Figure]], ...] = (
    speedup,
    quality,
    time_and_cost,
    efficiency,
    phases,
    losses,
)
MOST_ROWS, MOST_SENTENCES, MOST_QUESTIONS, MOST_READINGS = 16, 4, 3, 8
"""Largest numbers of rows, of sentences of the advice, of open questions and of sentences on how files were
read in a brief report."""
MOST_LINES = 20
"""Largest number of lines of its table, whose rows take several on a narrow terminal."""


def report_document(
    findings: Findings, study_link: str = "..", *, drawn: bool = True
) -> Document:
    """The report: decision, results, open questions, figures, sections, and how it was measured.

    `study_link` is the path from the page's folder to the study's, for links to runs. A terminal shows no
    figures: they need not be `drawn`.
    """
    advice = findings.advice
    cost = [Paragraph(advice.cost)] if advice.cost else []
    decision: tuple[Block, ...] = (
        Paragraph(advice.headline),
        *cost,
        *_items(advice.sentences),
    )
    blocks: list[Block] = [
        *_introduction(findings),
        Section("Decision", decision, style="advice"),
    ]
    shown = places(figures(findings)) if drawn else []
    if first := tuple(drawing for drawing in shown if drawing.figure.name in FIRST):
        blocks.append(
            Section("Speed-up and quality", first, "scaling", "figures first")
        )
    if findings.rows:
        decisive = [drawing for drawing in shown if drawing.figure.name == DECISIVE]
        words = Paragraph(_small_print(findings))
        blocks.append(Section("Results", (results_table(findings), words, *decisive)))
    if unsettled := [*advice.open_questions, *reasons(findings)]:
        blocks.append(Section("Not settled", _items(unsettled), "open", "open"))
    if tables := all_metrics(findings):
        title = "All metrics, by class" if len(tables) > 1 else "All metrics"
        blocks.append(Folded(title, tuple(tables), "metrics", page_only=True))
    others = tuple(
        drawing for drawing in shown if drawing.figure.name not in (*FIRST, DECISIVE)
    )
    if others:
        blocks.append(Section("Figures", others, style="figures"))
    blocks += sections(findings)
    if samples := sample_gallery(findings):
        blocks.append(samples)
    if findings.rows:
        blocks.append(
            Section("How this was measured", _items(notes(findings)), "measured")
        )
    if environment := environment_table(findings.runs):
        blocks.append(Folded("Environment", (environment,)))
    if runs := every_run(findings, study_link):
        blocks.append(runs)
    return Document(title_of(findings), tuple(blocks), "Scaling study", live=True)


def _introduction(findings: Findings) -> Iterator[Block]:
    """What was studied, for readers who do not know the study."""
    study = study_in_folder(findings)
    if study and study.description:
        yield Paragraph(study.description)
    if facts := what_was_studied(findings):
        yield facts


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


def write_report(
    folder: "StudyFolder", out: Path | None = None, *, findings: Findings | None = None
) -> Path:
    """Write `report.html`, `report.md`, `table.csv` and `table.json`, and figures as PNG, SVG and PDF.

    Of figures that share one place, only the first gets files; the page and notebooks have the others. `out`
    is by default the folder `report` in the study's folder. Without `findings`, the folder is read and
    analysed. Returns the path of the page.

    Raises:
        UserError: `out` is among the records of a study.
        OSError: A file cannot be written, or the folder `report` is a link.
    """
    findings = findings or read_study(folder)
    if out is None:
        out = make_inside(Path(folder.path) / REPORT)
    else:
        out = Path(out)
        refuse_target(out)
        out.mkdir(parents=True, exist_ok=True)
    link = Path(os.path.relpath(Path(folder.path).resolve(), out.resolve())).as_posix()
    document = report_document(findings, link)
    pictures = {
        drawing.figure.name: still(drawing.figure)
        for drawing in drawings(document.blocks)
    }
    for name, picture in pictures.items():
        for ending, content in (
            ("png", picture.png),
            ("svg", picture.svg),
            ("pdf", picture.pdf),
        ):
            write_atomically(out / f"{name}.{ending}", content)
    page = out / "report.html"
    write_atomically(page, html(document, pictures))
    write_atomically(
        out / "report.md",
        markdown(document, {name: f"{name}.svg" for name in pictures}),
    )
    write_atomically(out / "table.csv", to_csv(findings.rows))
    write_atomically(out / "table.json", to_json(findings))
    return page


def render_text(
    findings: Findings,
    width: int | None = None,
    colour: bool = False,
    verbose: bool = False,
    page: str | None = None,
) -> str:
    """The decision, or with `verbose` everything on the page; `page` is its path, for the last line.

    Without `width`, lines are as wide as the terminal.
    """
    console, stream = console_of(width or get_terminal_size((120, 40)).columns, colour)
    if verbose:
        console.print(Text(title_of(findings), style="bold"))
        print_blocks(report_document(findings, drawn=False).blocks, console)
    else:
        for part in _brief(findings, console):
            console.print(part)
        if not page:
            console.print(Text("Details: --verbose."))
    if page:  # on one line, so that it can be copied
        console.print(f"Page: {page}", markup=False, highlight=False, soft_wrap=True)
    return stream.getvalue()


def _brief(findings: Findings, console: Console) -> list[Text | Table]:
    """The decision: table, advice, cost, first sentences and open questions."""
    advice = findings.advice

    def text(words: str, style: str = "") -> Text:
        return wrap(words, console, "  ", style)

    # If nothing has finished, the reasons are what is worth printing.
    questions = [*([] if findings.rows else reasons(findings)), *advice.open_questions]
    left = len(questions) - MOST_QUESTIONS
    return [
        Text(title_of(findings), style="bold"),
        *_brief_readings(findings, text),
        *(_brief_table(findings, console) if findings.rows else []),
        Text(""),
        text(advice.headline, "bold green" if advice.choice else "bold yellow"),
        *([text(advice.cost)] if advice.cost else []),
        *(text(f"- {sentence}") for sentence in advice.sentences[:MOST_SENTENCES]),
        *(text(f"? {question}") for question in questions[:MOST_QUESTIONS]),
        *(
            [text(f"? {left} more open {'questions' if left > 1 else 'question'}.")]
            if left > 0
            else []
        ),
    ]


def _brief_readings(findings: Findings, text: Callable[[str], Text]) -> list[Text]:
    """How files of other tools were read, since what was merged or left out changes the table."""
    left = len(findings.readings) - MOST_READINGS
    more = [
        Text(f"Read: {left} more sentences on how the numbers were read: --verbose.")
    ] * (left > 0)
    # What was merged or left out comes last.
    shown = [
        text(f"Read: {sentence}") for sentence in findings.readings[-MOST_READINGS:]
    ]
    return [*more, *shown, *([Text("")] if shown else [])]


def _brief_table(findings: Findings, console: Console) -> list[Text | Table]:
    """The table; if it is too long, the recommended row, those on the Pareto front, and the first ones."""
    table, rows = results_table(findings, brief=True), findings.rows

    def rank(place: int) -> tuple[bool, bool, int]:
        price = rows[place].price
        return place != table.chosen, price is None or not price.on_front, place

    ranked = sorted(range(len(rows)), key=rank)
    for most in range(min(MOST_ROWS, len(rows)), 0, -1):
        places = sorted(ranked[:most])
        laid, dropped = laid_table(table.only(places), console, brief=True)
        if len(console.render_lines(laid, pad=False)) <= MOST_LINES:
            break
    left = len(rows) - len(places)
    noun = "rows" if left > 1 else "row"
    more = [
        Text(f"{left:,} more {noun}: on the page, or with `report --verbose`.")
    ] * bool(left)
    narrow = [
        wrap(f"Columns that need more width: {', '.join(dropped)}.", console)
    ] * bool(dropped)
    return [laid, *more, *narrow]
