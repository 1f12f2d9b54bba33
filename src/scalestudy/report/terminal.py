"""The report in a terminal: the decision in at most 30 lines, or everything on the page."""

from dataclasses import replace
from shutil import get_terminal_size

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalestudy.analysis.findings import Findings
from scalestudy.report.as_terminal import console_of, laid_table, print_blocks, wrapped
from scalestudy.report.details import reasons
from scalestudy.report.formats import Format, Medium
from scalestudy.report.results import results_table
from scalestudy.report.study_document import report_document

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
        return wrapped(words, console, "  ", style)

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
    narrow = [wrapped(f"Columns that need more width: {', '.join(dropped)}.", console)] * bool(dropped)
    return [laid, *more, *narrow]


def _render(findings: Findings, medium: Medium) -> str:
    width = medium.width or get_terminal_size((120, 40)).columns
    return render_text(findings, width, medium.colour, medium.verbose, medium.page)


FORMAT = Format(_render)
