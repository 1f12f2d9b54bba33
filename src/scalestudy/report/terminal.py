"""The report as text, for a terminal."""

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING, Literal

from scalestudy.analysis.findings import Findings
from scalestudy.report.as_terminal import MOST_ROWS, print_blocks
from scalestudy.report.formats import Format, Medium
from scalestudy.report.notes import notes
from scalestudy.report.sections import sections
from scalestudy.report.view import Cell, TableView, shown, view

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


UNBOUND = 10_000
"""Characters that no table takes."""
MOST_LINES = 30
"""Lines of a brief report."""
HEAD = 2
"""Lines of a table's heading, at least."""
MOST_QUESTIONS = 3
"""Open questions of a brief report."""
MOST_QUESTION_LINES = 9
"""Lines that they take."""
ALL = "--format csv, json and parquet have all"


def print_report(
    findings: Findings, console: "Console", *, verbose: bool = False, page: str | None = None
) -> None:
    """Print the decision, or with `verbose` all that the page says.

    Args:
        findings: What to report.
        console: Where to.
        verbose: Whether sections and notes are printed too.
        page: Where the page is, for the last line of a brief report.
    """
    from rich.text import Text

    if not verbose:
        for part in _brief(findings, console):
            console.print(part)
        console.print(Text("More: --verbose."))
        _print_page(page, console)
        return
    laid, advice = view(findings), findings.advice
    console.print(Text(findings.name, style="bold"))
    if laid.lines:
        lines = shown(laid.lines, MOST_ROWS)
        table, narrower = _chosen_table(replace(laid, lines=lines), console)
        console.print(table)
        if narrower:
            words = f"Columns that are not printed, for want of width: {', '.join(narrower)}; {ALL}."
            console.print(Text(_wrapped(words, console.width)))
        if left := len(laid.lines) - len(lines):
            console.print(Text(_wrapped(f"{left:,} more rows are not printed; {ALL}.", console.width)))
    for number, note in enumerate(laid.footnotes, start=1):
        console.print(Text(_wrapped(f"[{number}] {note}", console.width)))
    console.print()
    console.print(_headline(findings, console.width))
    _section(console, "", [sentence for sentence in (advice.cost, *advice.sentences) if sentence])
    _section(console, "Not settled", advice.open_questions)
    print_blocks(sections(findings), console)
    _section(console, "How this was measured", notes(findings) if laid.lines else ())
    _print_page(page, console)


def _print_page(page: str | None, console: "Console") -> None:
    """Where the page is, in one line that can be copied, however long it is."""
    if page:
        console.print(f"Page: {page}", markup=False, highlight=False, soft_wrap=True)


def _brief(findings: Findings, console: "Console") -> list["Text | Table"]:
    """The decision: table, advice, cost and what is not settled, two lines short of `MOST_LINES`.

    Rows are left out where they do not fit; sentences of the advice are there where there is room left.
    """
    from rich.text import Text

    def text(words: str) -> Text:
        return Text(_wrapped(words, console.width))

    def height(part: "Text | Table") -> int:
        return len(console.render_lines(part, pad=False))

    advice = findings.advice
    decided = [Text(""), _headline(findings, console.width), *([text(advice.cost)] if advice.cost else [])]
    questions: list[Text] = []
    room = MOST_QUESTION_LINES
    for question in map(text, (f"? {question}" for question in advice.open_questions[:MOST_QUESTIONS])):
        if (room := room - height(question)) >= 0:
            questions.append(question)
    if left := len(advice.open_questions) - len(questions):
        questions.append(text(f"? {left} more open {'questions' if left > 1 else 'question'}."))
    name = Text(findings.name, style="bold")
    room = MOST_LINES - 2 - sum(map(height, [name, *decided, *questions]))
    laid = view(findings, brief=True)
    table: list[Text | Table] = []
    for most in range(room - HEAD if laid.lines else 0, 0, -1):
        table = _brief_table(findings, laid, console, most)
        if sum(map(height, table)) <= room:
            break
    room -= sum(map(height, table))
    for sentence in map(text, (f"- {sentence}" for sentence in advice.sentences)):
        if (room := room - height(sentence)) < 0:
            break
        decided.append(sentence)
    return [name, *table, *decided, *questions]


def _brief_table(findings: Findings, laid: TableView, console: "Console", most: int) -> list["Text | Table"]:
    """The table: of many rows the advised one, those of the Pareto front, and the first."""
    from rich.text import Text

    rows = findings.rows

    def rank(place: int) -> tuple[bool, bool, int]:
        price = rows[place].price
        return not laid.lines[place].chosen, price is None or not price.on_front, place

    places = sorted(sorted(range(len(rows)), key=rank)[:most])
    left = len(rows) - len(places)
    more = [Text(f"{left:,} more {'rows' if left > 1 else 'row'}: --verbose, or the page.")] * bool(left)
    lines = tuple(laid.lines[place] for place in places)
    return [_chosen_table(replace(laid, lines=lines), console, brief=True)[0], *more]


def _headline(findings: Findings, width: int) -> "Text":
    from rich.text import Text

    style = "bold green" if findings.advice.choice else "bold yellow"
    return Text(_wrapped(findings.advice.headline, width), style=style)


def render_text(
    findings: Findings, width: int = 120, colour: bool = False, verbose: bool = False, page: str | None = None
) -> str:
    """The same as a string."""
    from scalestudy.report.console import PlainConsole

    stream = StringIO()
    console = PlainConsole(file=stream, width=width, force_terminal=colour, no_color=not colour)
    print_report(findings, console, verbose=verbose, page=page)
    return stream.getvalue()


def _section(console: "Console", heading: str, lines: Sequence[str]) -> None:
    from rich.text import Text

    if heading and lines:
        console.print()
        console.print(Text(heading, style="bold"))
    for line in lines:
        console.print(Text(_wrapped(f"- {line}", console.width)))


def _wrapped(text: str, width: int) -> str:
    return fill(text, max(20, width), subsequent_indent="  ", break_long_words=False)


def _chosen_table(laid: TableView, console: "Console", *, brief: bool = False) -> "tuple[Table, list[str]]":
    """The table with intervals beside the values, or below them where the terminal is narrow.

    Headings are short where intervals are below, or with `brief`. Where that is too wide still, the last
    columns are left out, but none that a decision needs; their names come with the table.
    """
    unbound = console.options.update(max_width=UNBOUND)  # or the measure is the console's width at most

    def fits(table: "Table") -> bool:
        return console.measure(table, options=unbound).maximum <= console.width

    table = _table(laid, short=brief, below=False)
    if fits(table):
        return table, []
    left: list[str] = []
    table = _table(laid, short=True, below=True)
    while not fits(table) and len(laid.headings) > laid.decision:
        left.insert(0, laid.headings[-1].brief)
        lines = tuple(replace(line, cells=line.cells[:-1]) for line in laid.lines)
        laid = replace(laid, headings=laid.headings[:-1], lines=lines)
        table = _table(laid, short=True, below=True)
    return table, left


def _table(laid: TableView, *, short: bool, below: bool) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in laid.headings:
        unit = heading.unit.replace(", against", ",\nagainst")
        wide = f"{heading.name.replace(' ', chr(10))}\n{unit}".strip()
        justify: Literal["right", "left"] = "right" if heading.numeric else "left"
        table.add_column(Text(heading.brief if short else wide), justify=justify, overflow="fold")
    for line in laid.lines:
        style = "bold green" if line.chosen else ""
        table.add_row(*(Text(_written(cell, below)) for cell in line.cells), style=style)
    return table


def _written(cell: Cell, below: bool) -> str:
    text = cell.with_interval
    if below and cell.numeric:
        text = text.replace(" ± ", "\n±").replace(" (", "\n(")
    return text if cell.note is None else f"{text} [{cell.note}]"


def _render(findings: Findings, medium: Medium) -> str:
    from shutil import get_terminal_size

    width = medium.width or get_terminal_size((120, 40)).columns
    return render_text(findings, width, medium.colour, medium.verbose, medium.page)


FORMAT = Format(_render)
