"""A document as text, for a terminal. Figures are named, not drawn."""

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from textwrap import fill, indent
from typing import TYPE_CHECKING, Literal

from scalestudy.report.document import (
    Block,
    Code,
    Document,
    Drawing,
    Folded,
    Items,
    Paragraph,
    Photos,
    Section,
    Table,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


def terminal(document: Document, width: int = 120, colour: bool = False) -> str:
    """The document as a string.

    Args:
        document: What to show.
        width: Columns.
        colour: Whether a terminal's colour codes may be in it.
    """
    from rich.text import Text

    from scalestudy.report.console import PlainConsole

    stream = StringIO()
    console = PlainConsole(file=stream, width=width, force_terminal=colour, no_color=not colour)
    console.print(Text(document.title, style="bold"))
    if document.subtitle:
        console.print(Text(document.subtitle))
    print_blocks(document.blocks, console)
    return stream.getvalue()


MOST_ROWS = 100
"""Rows of a table that are printed: what is longer nobody reads there, and laying it out takes seconds."""


def print_blocks(blocks: Sequence[Block], console: "Console") -> None:
    """Print blocks below each other, with an empty line between them."""
    from rich.text import Text

    for block in blocks:
        if isinstance(block, Drawing | Photos):
            continue
        console.print()
        match block:
            case Paragraph(text):
                console.print(Text(_wrapped(text, console.width)))
            case Items(items, ordered):
                for number, item in enumerate(items, start=1):
                    mark = f"{number}. " if ordered else "- "
                    console.print(Text(_wrapped(mark + item, console.width, " " * len(mark))))
            case Table():
                _print_table(block, console)
            case Code(text):
                console.print(Text(indent(text, "  ")), soft_wrap=True)
            case Folded(title, inner) | Section(title, inner):
                console.print(Text(title, style="bold"))
                print_blocks(inner, console)


def _print_table(table: Table, console: "Console") -> None:
    from rich.text import Text

    if table.caption:
        console.print(Text(_wrapped(table.caption, console.width)))
    every, table = len(table.rows), replace(table, rows=table.rows[:MOST_ROWS])
    wide = _table(table, brief=False)
    unbounded = console.options.update(width=10_000)
    narrow = console.measure(wide, options=unbounded).maximum > console.width
    console.print(_table(table, brief=True) if narrow else wide)
    if left := every - len(table.rows):
        console.print(Text(f"{left:,} more rows are not printed."))
    for number, note in enumerate(table.footnotes, start=1):
        console.print(Text(_wrapped(f"[{number}] {note}", console.width)))


def _table(table: Table, brief: bool) -> "RichTable":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    laid = RichTable(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in table.headings:
        name = heading.brief if brief and heading.brief else f"{heading.name}\n{heading.unit}".strip()
        justify: Literal["right", "left"] = "right" if heading.numeric else "left"
        laid.add_column(Text(name), justify=justify, overflow="fold")
    for row in table.rows:
        laid.add_row(*(Text(cell) for cell in row))
    return laid


def _wrapped(text: str, width: int, hanging: str = "") -> str:
    return fill(
        text, max(20, width), subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )
