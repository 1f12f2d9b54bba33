"""Tables in LaTeX: ruled by booktabs, as wide as the page at most, over several pages where they are long."""

from collections.abc import Sequence

from scalestudy.report.document import Table
from scalestudy.report.latex_text import escaped

LINE = 96
"""Letters of a table on a line of the page, in small type."""
WRAPPED = 30
"""Letters of a text from which its column has lines of its own."""
LONGEST = 40
"""Rows of a table that stays on one page."""
LEAST = 0.62
"""To which share of its size a table is made smaller; what is wider lies across the page."""
SIZES = ((1.0, r"\small"), (1.13, r"\footnotesize"), (1.3, r"\scriptsize"))
FIT = r"""\newsavebox{\tablebox}
\newcommand{\fitting}[1]{\sbox{\tablebox}{#1}\ifdim\wd\tablebox>\linewidth
  \resizebox{\linewidth}{!}{\usebox{\tablebox}}\else\usebox{\tablebox}\fi}"""
"""Makes a table smaller that is wider than the page."""


def table_lines(table: Table) -> list[str]:
    """A table with its caption and footnotes, as lines."""
    letters = _letters(table)
    across = sum(_widths(letters, table, LINE)) * LEAST > LINE
    line = LINE * 1.5 if across else float(LINE)
    widths = _widths(letters, table, line)
    columns = _columns(letters, widths, table, line)
    inner = _long(table, columns, sum(widths) / line) if len(table.rows) > LONGEST else _short(table, columns)
    caption = (
        [rf"{{\small {escaped(table.caption)}\par}}\nopagebreak[4]\vspace{{-2pt}}"] if table.caption else []
    )
    notes = [
        rf"{{\footnotesize [{n}] {escaped(note)}\par}}" for n, note in enumerate(table.footnotes, start=1)
    ]
    lines = [*caption, *inner, *notes]
    return [r"\begin{landscape}", *lines, r"\end{landscape}"] if across else lines


def _short(table: Table, columns: str) -> list[str]:
    return [
        rf"\fitting{{\small\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *_head(table),
        r"\midrule",
        *_rows(table),
        r"\bottomrule",
        r"\end{tabular}}\par",
    ]


def _long(table: Table, columns: str, share: float) -> list[str]:
    size = next((name for limit, name in SIZES if share <= limit), r"\tiny")
    return [
        rf"{{{size}\begin{{longtable}}{{{columns}}}",
        r"\toprule",
        *_head(table),
        r"\midrule\endhead",
        *_rows(table),
        r"\bottomrule",
        r"\end{longtable}}",
    ]


def _head(table: Table) -> list[str]:
    names = " & ".join(escaped(heading.name) for heading in table.headings)
    if not any(heading.unit for heading in table.headings):
        return [rf"{names} \\"]
    units = " & ".join(
        rf"{{\footnotesize {escaped(heading.unit)}}}" if heading.unit else "" for heading in table.headings
    )
    return [rf"{names} \\", rf"{units} \\"]


def _rows(table: Table) -> list[str]:
    # A cell that begins with a bracket would be taken for the space that \\ may ask for.
    return [rf"{' & '.join(_cell(cell) for cell in row)} \\" for row in table.rows]


def _cell(text: str) -> str:
    told = escaped(text)
    return f"{{{told}}}" if told.startswith("[") else told


def _letters(table: Table) -> list[int]:
    """Letters of the longest cell of each column."""
    return [
        max([len(row[place]) for row in table.rows] + [len(heading.name), round(0.9 * len(heading.unit))])
        for place, heading in enumerate(table.headings)
    ]


def _widths(letters: Sequence[int], table: Table, line: float) -> list[int]:
    """Letters of each column with the space between two, texts wrapped where the line is too short."""
    if sum(letters) + 2 * len(letters) <= line:
        return [count + 2 for count in letters]
    return [
        (count if heading.numeric else min(count, WRAPPED)) + 2
        for count, heading in zip(letters, table.headings, strict=True)
    ]


def _columns(letters: Sequence[int], widths: Sequence[int], table: Table, line: float) -> str:
    """Kinds of columns: numbers to the right, words to the left, texts on lines within what is left."""
    wrapped = [count + 2 > width for count, width in zip(letters, widths, strict=True)]
    wanted = [min(count, 3 * WRAPPED) if wraps else 0 for count, wraps in zip(letters, wrapped, strict=True)]
    fixed = sum(width for width, wraps in zip(widths, wrapped, strict=True) if not wraps)
    left = max(line - fixed - 2 * sum(wrapped), 0.2 * line)
    kinds = []
    for heading, want in zip(table.headings, wanted, strict=True):
        share = max(left * want / sum(wanted) / line, 0.12) if want else 0.0
        own = rf">{{\raggedright\arraybackslash}}p{{{share:.2f}\linewidth}}"
        kinds.append(own if want else "r" if heading.numeric else "l")
    return f"@{{}}{''.join(kinds)}@{{}}"
