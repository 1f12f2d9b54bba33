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
from scalestudy.report.view import Cell, TableView, view

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


UNBOUND = 10_000
"""Characters that no table takes."""
ALL = "--format csv, json and parquet have all, and --format html writes a page of them"


def print_report(findings: Findings, console: "Console") -> None:
    """Print table, footnotes, advice and notes."""
    from rich.text import Text

    laid, advice = view(findings), findings.advice
    console.print(Text(findings.name, style="bold"))
    if laid.lines:
        shown = _shown(laid)
        console.print(_fitting(shown, console))
        if left := len(laid.lines) - len(shown.lines):
            console.print(Text(_wrapped(f"{left:,} more rows are not printed; {ALL}.", console.width)))
    for number, note in enumerate(laid.footnotes, start=1):
        console.print(Text(_wrapped(f"[{number}] {note}", console.width)))
    console.print()
    console.print(
        Text(findings.advice.headline, style="bold green" if findings.advice.choice else "bold yellow")
    )
    _section(console, "", advice.sentences)
    _section(console, "Not settled", advice.open_questions)
    print_blocks(sections(findings), console)
    _section(console, "How this was measured", notes(findings) if laid.lines else ())


def render_text(findings: Findings, width: int = 120, colour: bool = False) -> str:
    """The same as a string."""
    from scalestudy.report.console import PlainConsole

    stream = StringIO()
    print_report(findings, PlainConsole(file=stream, width=width, force_terminal=colour, no_color=not colour))
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


def _shown(laid: TableView) -> TableView:
    """The table, of a long one the first rows and the advised one."""
    lines = laid.lines
    kept = [*lines[:MOST_ROWS], *(line for line in lines[MOST_ROWS:] if line.chosen)]
    return replace(laid, lines=tuple(kept))


def _fitting(laid: TableView, console: "Console") -> "Table":
    """The table with intervals beside the values, or below them where the terminal is narrow."""
    table = _table(laid, narrow=False)
    unbound = console.options.update(max_width=UNBOUND)  # or the measure is the console's width at most
    wanted = console.measure(table, options=unbound).maximum
    return table if wanted <= console.width else _table(laid, narrow=True)


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

    return render_text(findings, medium.width or get_terminal_size((120, 40)).columns, medium.colour)


FORMAT = Format(_render)
