"""Render a document as GitHub Flavored Markdown (specification 0.29)."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from scalestudy.report.document import (
    Block,
    Code,
    Document,
    Drawing,
    Folded,
    Items,
    Paragraph,
    Section,
    Table,
    on_paper,
    pieces,
)

SPECIAL = re.compile(r"(https?://[^\s<>|`]+)|([\\`*_{}\[\]<>#|~$])")
"""Characters with a meaning in Markdown; those within an address are left alone."""


def markdown(document: Document, pictures: Mapping[str, str] | None = None) -> str:
    """Render a document as Markdown.

    `pictures` maps names of figures to addresses of their images; other figures show only their captions.
    """
    lines = [f"# {escaped(document.title)}"]
    if document.subtitle:
        lines += ["", escaped(document.subtitle)]
    lines += _blocks(document.blocks, pictures or {}, 2)
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Escape text for Markdown, with `backticks` as code."""
    return "".join(
        f"`{part}`" if code else SPECIAL.sub(lambda match: match[1] or f"\\{match[2]}", part)
        for part, code in pieces(" ".join(text.split()))
    )


def _blocks(blocks: Sequence[Block], pictures: Mapping[str, str], level: int) -> list[str]:
    return [
        line
        for block in on_paper(blocks)
        if (lines := _block(block, pictures, level))
        for line in ("", *lines)
    ]


def _block(block: Block, pictures: Mapping[str, str], level: int) -> list[str]:
    match block:
        case Paragraph(text):
            return [escaped(text)]
        case Items(items, ordered):
            marks = (f"{number}." if ordered else "-" for number in range(1, len(items) + 1))
            return [f"{mark} {escaped(item)}" for mark, item in zip(marks, items, strict=True)]
        case Code(text, language):
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            return [f"{fence}{language}", *text.splitlines(), fence]
        case Table():
            return _table(block)
        case _:
            return _container(block, pictures, level)


def _container(block: Block, pictures: Mapping[str, str], level: int) -> list[str]:
    match block:
        case Folded(title, inner):
            head = ["<details>", f"<summary>{escape(title)}</summary>"]
            return [*head, *_blocks(inner, pictures, level), "", "</details>"]
        case Section(title, inner):
            return [f"{'#' * min(level, 6)} {escaped(title)}", *_blocks(inner, pictures, level + 1)]
        case Drawing(figure):
            address, title = pictures.get(figure.name), escaped(figure.title)
            shown = [f"![{title}]({address})", ""] if address else []
            return [*shown, f"**{title}.** {escaped(figure.caption)}"]
    return []


def _table(table: Table) -> list[str]:
    names = [
        f"{heading.name} ({heading.unit})" if heading.unit else heading.name for heading in table.headings
    ]
    lines = [escaped(table.caption), ""] if table.caption else []
    lines.append(_line([escaped(name) for name in names]))
    lines.append(_line(["---:" if heading.numeric else "---" for heading in table.headings]))
    for index, row in enumerate(table.rows):
        cells = [escaped(str(cell)) for cell in row]
        lines.append(_line([f"{cells[0]} ←", *cells[1:]] if index == table.chosen else cells))
    notes = [f"[{number}] {escaped(note)}" for number, note in enumerate(table.footnotes, start=1)]
    return lines + (["", "  \n".join(notes)] if notes else [])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
