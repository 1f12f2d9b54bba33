"""A page composed once: renderers turn its blocks into HTML, Markdown, LaTeX and text.

Texts are plain: what stands between `backticks` is code, and renderers escape everything else.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from scalestudy.report.figure import Figure

CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Heading:
    """A column's name, and its unit or explanation."""

    name: str
    unit: str = ""
    brief: str = ""
    """Both in a few letters, where there is no room."""
    numeric: bool = True


@dataclass(frozen=True)
class Cell:
    """A table cell with more than a text.

    Attributes:
        text: The value, without its interval.
        full: The value with its interval, where the page shows the interval as `small`.
        small: Below the text on a page.
        remark: Likewise, a line of its own.
        note: Number of its footnote.
        sort: By what a page sorts it: a number with all digits; empty where the value is unknown.
        link: Where the text leads to.
        kind: Class of the text, or of the remark where there is one: "failed", "worse".
    """

    text: str
    full: str = ""
    small: str = ""
    remark: str = ""
    note: int | None = None
    sort: str = ""
    link: str = ""
    kind: str = ""

    def __str__(self) -> str:
        text = self.full or self.text
        return text if self.note is None else f"{text} [{self.note}]"


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under headings; each row has as many cells as there are headings.

    Attributes:
        caption: Above the table.
        footnotes: Numbered from 1, as the cells' notes.
        name: By which other places refer to it.
        chosen: Index of the row that is advised.
        essential: How many columns, from the first, are shown however narrow a terminal is; 0 for all.
        sortable: Whether a page sorts and searches it.
    """

    headings: tuple[Heading, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    caption: str = ""
    footnotes: tuple[str, ...] = ()
    name: str = ""
    chosen: int | None = None
    essential: int = 0
    sortable: bool = False

    def first(self, most: int) -> "Table":
        """The first rows, and the advised one."""
        rows, chosen = self.rows[:most], self.chosen
        if chosen is not None and chosen >= most:
            rows, chosen = (*rows, self.rows[chosen]), most
        return replace(self, rows=rows, chosen=chosen)


@dataclass(frozen=True)
class KeyNumbers:
    """Key numbers, each with its name and a remark, which a page alone shows."""

    facts: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Drawing:
    """A figure in its place, or what makes it once it is asked for: a terminal shows none."""

    made: Figure | Callable[[], Figure]
    choices: tuple[Figure, ...] = ()
    """Figures that a reader can ask for in the same place."""

    __match_args__ = ("figure",)

    @cached_property
    def figure(self) -> Figure:
        """The figure."""
        return self.made if isinstance(self.made, Figure) else self.made()


@dataclass(frozen=True)
class Photo:
    """Images of one thing side by side: PNG files, each with a description for those who cannot see it."""

    caption: str
    images: tuple[tuple[bytes, str], ...]


@dataclass(frozen=True)
class Photos:
    """Photographs, which a page alone shows."""

    photos: tuple[Photo, ...]


@dataclass(frozen=True)
class Code:
    """What is typed or kept as it stands."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Folded:
    """What is opened by who wants to know: closed on a page, ordinary on paper."""

    title: str
    blocks: tuple["Block", ...]
    name: str = ""
    page_only: bool = False
    """Whether other forms leave it out."""


@dataclass(frozen=True)
class Section:
    """Blocks under a title; sections may nest."""

    title: str
    blocks: tuple["Block", ...]
    name: str = ""
    """By which other places refer to it; made of the title when empty."""
    style: str = ""
    """Its look on a page: "advice", "open" or "figures"."""


Block = Paragraph | Items | Table | KeyNumbers | Drawing | Photos | Code | Folded | Section


@dataclass(frozen=True)
class Document:
    """A whole page."""

    title: str
    blocks: tuple[Block, ...]
    subtitle: str = ""
    live: bool = False
    """Whether a page has a table of contents, and draws its figures by scripts."""


def drawings(blocks: Sequence[Block]) -> Iterator[Drawing]:
    """All figures, in order."""
    for block in blocks:
        if isinstance(block, Drawing):
            yield block
        elif isinstance(block, Folded | Section):
            yield from drawings(block.blocks)


def on_paper(blocks: Sequence[Block]) -> list[Block]:
    """The blocks that forms other than a page show."""
    return [
        block
        for block in blocks
        if not isinstance(block, KeyNumbers | Photos) and not (isinstance(block, Folded) and block.page_only)
    ]


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """A text in parts, each with whether it is code."""
    for index, part in enumerate(CODE.split(text)):
        if part:
            yield part, index % 2 == 1


def anchor(block: Section | Folded) -> str:
    """The name by which a page's own links reach it."""
    return block.name or re.sub(r"[^a-z0-9]+", "-", block.title.lower()).strip("-") or "section"
