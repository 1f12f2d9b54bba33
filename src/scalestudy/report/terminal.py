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
MOST_BRIEF_ROWS = 12
"""Rows of the table of a brief report, beside the advised one; fewer where each takes two lines."""
MOST_QUESTIONS = 3
"""Open questions of a brief report."""
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
        for text in _brief(findings, console, page):
            console.print(text)
        return
    laid, advice = view(findings), findings.advice
    console.print(Text(findings.name, style="bold"))
    if laid.lines:
        lines = shown(laid.lines, MOST_ROWS)
        console.print(_chosen_table(replace(laid, lines=lines), console)[0])
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


def _brief(findings: Findings, console: "Console", page: str | None) -> list["Text | Table"]:
    """The decision in at most `MOST_LINES`: table, advice, cost, what is not settled, where the page is."""
    from rich.text import Text

    advice, width = findings.advice, console.width
    laid = view(findings, brief=True)
    parts: list[Text | Table] = [Text(findings.name, style="bold")]
    used = 1
    if laid.lines:
        table, narrow = _chosen_table(laid, console)
        rows = shown(laid.lines, MOST_BRIEF_ROWS // 2 if narrow else MOST_BRIEF_ROWS)
        if len(rows) < len(laid.lines):
            table = _table(replace(laid, lines=rows), narrow)
        parts.append(table)
        used += len(console.render_lines(table, console.options, pad=False))
        if left := len(laid.lines) - len(rows):
            parts.append(Text(_wrapped(f"{left:,} more rows: --verbose, or the page.", width)))
            used += 1
    decided = [_headline(findings, width)]
    end = [Text(f"Page: {page}", overflow="fold")] if page else []
    end.append(Text("More: --verbose."))
    questions = [f"? {question}" for question in advice.open_questions[:MOST_QUESTIONS]]
    if len(advice.open_questions) > MOST_QUESTIONS:
        questions.append(f"? {len(advice.open_questions) - MOST_QUESTIONS} more open questions.")
    if advice.cost:
        decided.append(Text(_wrapped(advice.cost, width)))
    used += 1 + sum(map(_height, [*decided, *end]))
    settled = [Text(_wrapped(text, width)) for text in questions]
    room = MOST_LINES - used - sum(map(_height, settled))
    for text in (f"- {sentence}" for sentence in advice.sentences):
        wrapped = Text(_wrapped(text, width))
        if (room := room - _height(wrapped)) < 0:
            break
        decided.append(wrapped)
    return [*parts, Text(""), *decided, *settled, *end]


def _height(text: "Text | Table") -> int:
    return str(text).count("\n") + 1


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


def _chosen_table(laid: TableView, console: "Console") -> "tuple[Table, bool]":
    """The table with intervals beside the values, or below them (True) where the terminal is narrow."""
    table = _table(laid, narrow=False)
    unbound = console.options.update(max_width=UNBOUND)  # or the measure is the console's width at most
    wanted = console.measure(table, options=unbound).maximum
    return (table, False) if wanted <= console.width else (_table(laid, narrow=True), True)


def _table(laid: TableView, narrow: bool) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in laid.headings:
        unit = heading.unit.replace(", against", ",\nagainst")
        wide = f"{heading.name.replace(' ', chr(10))}\n{unit}".strip()
        justify: Literal["right", "left"] = "right" if heading.numeric else "left"
        table.add_column(Text(heading.brief if narrow else wide), justify=justify, overflow="fold")
    for line in laid.lines:
        style = "bold green" if line.chosen else ""
        table.add_row(*(Text(_written(cell, narrow)) for cell in line.cells), style=style)
    return table


def _written(cell: Cell, narrow: bool) -> str:
    if cell.note is not None:
        return f"{cell.text} [{cell.note}]"
    if not narrow or not cell.numeric:
        return cell.with_interval
    return cell.with_interval.replace(" ± ", "\n±").replace(" (", "\n(")


def _render(findings: Findings, medium: Medium) -> str:
    from shutil import get_terminal_size

    width = medium.width or get_terminal_size((120, 40)).columns
    return render_text(findings, width, medium.colour, medium.verbose, medium.page)


FORMAT = Format(_render)
