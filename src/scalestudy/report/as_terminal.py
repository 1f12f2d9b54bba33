"""Render a document as text for a terminal, without figures.

Printed text cannot move the terminal's cursor, hide itself or rename the window.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import StringIO
from textwrap import fill, indent
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from scalestudy.report.document import (
    Block,
    Cell,
    Code,
    Document,
    FactList,
    Folded,
    Items,
    Paragraph,
    Section,
    Table,
    on_paper,
)
from scalestudy.util.printable import printable

MOST_ROWS = 100
"""Largest number of table rows that are printed: laying out more takes seconds."""


class PlainConsole(Console):
    """Rich's console, with control sequences in names and messages escaped; only its own styles remain."""

    def render(
        self,
        renderable: RenderableType,
        options: ConsoleOptions | None = None,
    ) -> Iterable[Segment]:
        """Return the segments to print, with their texts made printable."""
        for segment in super().render(renderable, options):
            # Rich's own control segments hold no text of users.
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def terminal(document: Document, width: int = 120, colour: bool = False) -> str:
    """Render a document as a string of `width` columns, with terminal colour codes if `colour`."""
    console, stream = console_of(width, colour)
    console.print(Text(document.title, style="bold"))
    if document.subtitle:
        console.print(Text(document.subtitle))
    print_blocks(document.blocks, console)
    return stream.getvalue()


def console_of(width: int, colour: bool) -> tuple[Console, StringIO]:
    """A console that writes into a string."""
    stream = StringIO()
    return PlainConsole(
        file=stream,
        width=width,
        force_terminal=colour,
        no_color=not colour,
    ), stream


def print_blocks(blocks: Sequence[Block], console: Console) -> None:
    """Print blocks with an empty line between them."""
    for block in on_paper(blocks):
        match block:
            case Paragraph(text):
                console.print("", wrap(text, console), sep="\n")
            case Items(items, ordered):
                console.print()
                for number, item in enumerate(items, start=1):
                    mark = f"{number}. " if ordered else "- "
                    hanging = " " * len(mark)
                    console.print(wrap(mark + item, console, hanging))
            case FactList(rows):
                console.print()
                for name, text in rows:
                    line = f"{name}: {text}"
                    console.print(wrap(line, console, "  "))
            case Table():
                console.print()
                _print_table(block, console)
            case Code(text):
                console.print()
                console.print(Text(indent(text, "  ")), soft_wrap=True)
            case Folded(title, inner) | Section(title, inner):
                console.print("", Text(title, style="bold"), sep="\n")
                print_blocks(inner, console)


def _print_table(table: Table, console: Console) -> None:
    if table.caption:
        console.print(wrap(table.caption, console))
    shown = table.first(MOST_ROWS)
    laid, dropped = laid_table(shown, console)
    unbounded = console.options.update(max_width=10_000)
    in_words = not any(heading.numeric for heading in table.headings)
    needed = console.measure(laid, options=unbounded).minimum
    # Rich folds a path that is too long for its column, so that nobody could copy it.
    if in_words and needed > console.width:
        _print_records(shown, console)
    else:
        console.print(laid)
    if dropped:
        names = ", ".join(dropped)
        console.print(wrap(f"Columns that need more width: {names}.", console))
    if left := len(table.rows) - len(shown.rows):
        console.print(wrap(f"{left:,} more rows are not printed.", console))
    for number, note in enumerate(table.footnotes, start=1):
        console.print(wrap(f"[{number}] {note}", console))


def _print_records(table: Table, console: Console) -> None:
    """Print a row as a line for each cell, so that a path too long for a column can be copied."""
    names = [heading.name for heading in table.headings]
    for title, *cells in table.rows:
        console.print(Text(str(title), style="bold"), soft_wrap=True)
        for name, cell in zip(names[1:], cells, strict=True):
            if str(cell):
                line = Text(f"  {name}: {cell}")
                console.print(line, soft_wrap=True)


def laid_table(
    table: Table,
    console: Console,
    *,
    brief: bool = False,
) -> tuple[RichTable, list[str]]:
    """Lay out a table for the console's width; return it and the names of dropped columns.

    Headings are short if the table is too wide or `brief` is set. If it is still too wide, intervals go below
    their values, and then the last non-essential columns are dropped.
    """
    # Otherwise the measure is capped at the width.
    unbounded = console.options.update(max_width=10_000)

    def fits(laid: RichTable) -> bool:
        return console.measure(laid, options=unbounded).maximum <= console.width

    laid = _rich(table, short=brief, below=False)
    if fits(laid):
        return laid, []
    dropped: list[str] = []
    laid = _rich(table, short=True, below=True)
    while not fits(laid) and 0 < table.essential < len(table.headings):
        *headings, last = table.headings
        rows = [row[:-1] for row in table.rows]
        dropped.insert(0, last.brief or last.name)
        table = replace(table, headings=tuple(headings), rows=tuple(rows))
        laid = _rich(table, short=True, below=True)
    return laid, dropped


def _rich(table: Table, *, short: bool, below: bool) -> RichTable:
    laid = RichTable(
        box=SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for heading in table.headings:
        unit = heading.unit.replace(", ", ",\n")
        name = f"{heading.name}\n{unit}".strip()
        if short and heading.brief:
            name = heading.brief
        justify: Literal["right", "left"] = "left"
        if heading.numeric:
            # So that digits of one value stand below each other.
            justify = "right"
        laid.add_column(Text(name), justify=justify, overflow="fold")
    for index, row in enumerate(table.rows):
        # Rows that are left out leave a mark, or a reader would take the table for complete.
        if index in table.gaps:
            laid.add_row("…")
        cells = [_written(cell, below) for cell in row]
        style = ""
        if index == table.chosen:
            cells[0] += " ←"
            style = "bold green"
        laid.add_row(*map(Text, cells), style=style)
    if len(table.rows) in table.gaps:
        laid.add_row("…")
    return laid


def _written(cell: str | Cell, below: bool) -> str:
    # Intervals below their values make columns narrower, so that a terminal drops fewer of them.
    if isinstance(cell, Cell) and below and cell.sort:
        return str(cell).replace(" ± ", "\n±").replace(" (", "\n(")
    return str(cell)


def wrap(
    text: str,
    console: Console,
    hanging: str = "",
    style: str = "",
) -> Text:
    """Wrap text to the terminal's width without breaking words."""
    lines = fill(
        text,
        max(20, console.width),
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return Text(lines, style=style)
