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
from scalestudy.util.text import plural

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
    findings: Findings,
    study_link: str = "..",
    *,
    drawn: bool = True,
) -> Document:
    """The report: decision, results, open questions, figures, sections, and how it was measured.

    `study_link` is the path from the page's folder to the study's, for links to runs. A terminal shows no
    figures: they need not be `drawn`.
    """
    advice = findings.advice
    decision: list[Block] = [Paragraph(advice.headline)]
    if advice.cost:
        decision.append(Paragraph(advice.cost))
    decision += _items(advice.sentences)
    blocks: list[Block] = [
        *_introduction(findings),
        Section("Decision", tuple(decision), style="advice"),
    ]
    first: list[Drawing] = []
    decisive: list[Drawing] = []
    others: list[Drawing] = []
    if drawn:
        first, decisive, others = _by_part(findings)
    if first:
        title, style = "Speed-up and quality", "figures first"
        blocks.append(Section(title, tuple(first), "scaling", style))
    if findings.rows:
        table = results_table(findings)
        words = Paragraph(_small_print(findings))
        blocks.append(Section("Results", (table, words, *decisive)))
    if unsettled := [*advice.open_questions, *reasons(findings)]:
        blocks.append(Section("Not settled", _items(unsettled), "open", "open"))
    if tables := all_metrics(findings):
        title = "All metrics, by class" if len(tables) > 1 else "All metrics"
        blocks.append(Folded(title, tuple(tables), "metrics", page_only=True))
    if others:
        blocks.append(Section("Figures", tuple(others), style="figures"))
    blocks += sections(findings)
    if samples := sample_gallery(findings):
        blocks.append(samples)
    if findings.rows:
        measured = _items(notes(findings))
        blocks.append(Section("How this was measured", measured, "measured"))
    if environment := environment_table(findings.runs):
        blocks.append(Folded("Environment", (environment,)))
    if runs := every_run(findings, study_link):
        blocks.append(runs)
    return Document(title_of(findings), tuple(blocks), "Scaling study", live=True)


def _by_part(
    findings: Findings,
) -> tuple[list[Drawing], list[Drawing], list[Drawing]]:
    """The figures below the decision, those with the results, and the others."""
    first, decisive, others = [], [], []
    for drawing in places(figures(findings)):
        if drawing.figure.name in FIRST:
            first.append(drawing)
        elif drawing.figure.name == DECISIVE:
            decisive.append(drawing)
        else:
            others.append(drawing)
    return first, decisive, others


def _introduction(findings: Findings) -> Iterator[Block]:
    """What was studied, for readers who do not know the study."""
    study = study_in_folder(findings)
    if study and study.description:
        yield Paragraph(study.description)
    if facts := what_was_studied(findings):
        yield facts


def _items(lines: Collection[str]) -> tuple[Items, ...]:
    if not lines:
        return ()
    return (Items(tuple(lines)),)


def _small_print(findings: Findings) -> str:
    """Meaning of the intervals and of the mark in the table."""
    text = (
        "One run each, so there are no intervals: chance differences are not visible."
    )
    if any(row.runs > 1 for row in findings.rows):
        over = "seeds"
        if any(run.result.swept.keys() & REPEATS for run in findings.runs):
            over = "seeds and splits"
        text = f"Intervals are 95 % confidence intervals over {over}."
    if findings.advice.choice:
        text += " The advised row is marked."
    return text


def figures(findings: Findings) -> list[Figure]:
    """All figures for which the finished runs have data, those of a group one after another."""
    from altair.utils.schemapi import debug_mode

    made = []
    # Altair checks each chart against the schema otherwise, which takes longer than drawing it.
    with debug_mode(False):
        for make in MAKERS:
            made += make(findings)
    return made


def places(made: Sequence[Figure]) -> list[Drawing]:
    """Group the figures by place, each with the others that can be selected there."""
    groups: dict[str, list[Figure]] = {}
    for figure in made:
        place = figure.group or figure.name
        groups.setdefault(place, []).append(figure)
    drawn = []
    for first, *others in groups.values():
        drawn.append(Drawing(first, tuple(others)))
    return drawn


def write_report(
    folder: "StudyFolder",
    out: Path | None = None,
    *,
    findings: Findings | None = None,
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
    study = Path(folder.path).resolve()
    # Relative, so that the links still work where the folder is copied or mounted elsewhere.
    link = Path(os.path.relpath(study, out.resolve())).as_posix()
    document = report_document(findings, link)
    pictures = {}
    # Drawn once, for the page and for the files.
    for drawing in drawings(document.blocks):
        pictures[drawing.figure.name] = still(drawing.figure)
    for name, picture in pictures.items():
        write_atomically(out / f"{name}.png", picture.png)
        write_atomically(out / f"{name}.svg", picture.svg)
        write_atomically(out / f"{name}.pdf", picture.pdf)
    page = out / "report.html"
    write_atomically(page, html(document, pictures))
    addresses = {}
    for name in pictures:
        addresses[name] = f"{name}.svg"
    write_atomically(out / "report.md", markdown(document, addresses))
    write_atomically(out / "table.csv", to_csv(findings.rows))
    # Last: the command line compares it to tell whether the page is up to date.
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
    if not width:
        width = get_terminal_size((120, 40)).columns
    console, stream = console_of(width, colour)
    if verbose:
        console.print(Text(title_of(findings), style="bold"))
        print_blocks(report_document(findings, drawn=False).blocks, console)
    else:
        for part in _brief(findings, console):
            console.print(part)
        if not page:
            console.print(Text("Details: --verbose."))
    if page:  # on one line, so that it can be copied
        console.print(
            f"Page: {page}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    return stream.getvalue()


def _brief(findings: Findings, console: Console) -> list[Text | Table]:
    """The decision: table, advice, cost, first sentences and open questions."""
    advice = findings.advice

    def text(words: str, style: str = "") -> Text:
        return wrap(words, console, "  ", style)

    parts: list[Text | Table] = [Text(title_of(findings), style="bold")]
    parts += _brief_readings(findings, text)
    if findings.rows:
        parts += _brief_table(findings, console)
    parts.append(Text(""))
    style = "bold yellow"
    if advice.choice:
        style = "bold green"
    parts.append(text(advice.headline, style))
    if advice.cost:
        parts.append(text(advice.cost))
    for sentence in advice.sentences[:MOST_SENTENCES]:
        parts.append(text(f"- {sentence}"))
    questions = list(advice.open_questions)
    if not findings.rows:
        # If nothing has finished, the reasons are what is worth printing.
        questions = [*reasons(findings), *questions]
    for question in questions[:MOST_QUESTIONS]:
        parts.append(text(f"? {question}"))
    left = len(questions) - MOST_QUESTIONS
    if left > 0:
        parts.append(text(f"? {left} more open {plural('question', left)}."))
    return parts


def _brief_readings(findings: Findings, text: Callable[[str], Text]) -> list[Text]:
    """How files of other tools were read, since what was merged or left out changes the table."""
    lines = []
    left = len(findings.readings) - MOST_READINGS
    if left > 0:
        more = f"Read: {left} more sentences on how the numbers were read: --verbose."
        lines.append(Text(more))
    # What was merged or left out comes last.
    for sentence in findings.readings[-MOST_READINGS:]:
        lines.append(text(f"Read: {sentence}"))
    if lines:
        lines.append(Text(""))
    return lines


def _brief_table(findings: Findings, console: Console) -> list[Text | Table]:
    """The table; if it is too long, the recommended row, those on the Pareto front, and the first ones."""
    table = results_table(findings, brief=True)
    rows = findings.rows

    def rank(place: int) -> tuple[bool, bool, int]:
        price = rows[place].price
        off_front = price is None or not price.on_front
        return place != table.chosen, off_front, place

    ranked = sorted(range(len(rows)), key=rank)
    # Rows of a narrow terminal take several lines, and only the laid-out table tells how many.
    for most in range(min(MOST_ROWS, len(rows)), 0, -1):
        places = sorted(ranked[:most])
        shown = table.only(places)
        laid, dropped = laid_table(shown, console, brief=True)
        if len(console.render_lines(laid, pad=False)) <= MOST_LINES:
            break
    parts: list[Text | Table] = [laid]
    left = len(rows) - len(places)
    if left:
        more = f"{left:,} more {plural('row', left)}"
        parts.append(Text(f"{more}: on the page, or with `report --verbose`."))
    if dropped:
        narrow = f"Columns that need more width: {', '.join(dropped)}."
        parts.append(wrap(narrow, console))
    return parts
