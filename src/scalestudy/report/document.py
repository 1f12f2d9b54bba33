"""A page as blocks, which renderers turn into HTML, Markdown and text.

Texts are plain: text between `backticks` is code, and renderers escape everything else.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from scalestudy.report.figure import Figure

CODE = re.compile(r"`([^`]+)`")
T = TypeVar("T")


@dataclass(frozen=True)
class Heading:
    """A column's name, with its unit or an explanation."""

    name: str
    unit: str = ""
    brief: str = ""
    """Short form of name and unit for narrow tables."""
    numeric: bool = True
    detail: bool = False
    """Whether a page shows the column on demand."""


def headings_of(*names: str) -> tuple[Heading, ...]:
    """Headings from names such as "Power (W)"; a colon at the end is for a column of words."""
    headings = []
    for name in names:
        head, _, bracket = name.rstrip(":").partition(" (")
        unit = bracket.rstrip(")")
        numeric = not name.endswith(":")
        headings.append(Heading(head, unit, numeric=numeric))
    return tuple(headings)


@dataclass(frozen=True)
class Cell:
    """A table cell with more than a text.

    Attributes:
        text: The value, without its interval.
        full: The value with its interval, where the page shows the interval as `small`.
        small: Shown below the text on a page.
        remark: A judgement of the text, in a column beside it on a page.
        note: Number of its footnote.
        sort: Sort key on a page: a number with all digits; empty if the value is unknown.
        link: Target of the text's link.
        kind: CSS class of the remark, or of the text without a remark: "failed", "worse".
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
        if self.note is not None:
            text += f" [{self.note}]"
        return text


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True)
class FactList:
    """Short texts with their names, side by side on a page."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under headings; each row has as many cells as there are headings.

    Attributes:
        footnotes: Numbered from 1, matching the cells' notes.
        name: Name for links.
        chosen: Index of the recommended row.
        essential: How many leading columns are shown even on a narrow terminal; 0 for all.
        sortable: Whether a page can sort and search it.
        gaps: Indices of the rows before which others are left out.
        series: Name of each row's series in the figures, by which a page filters both.
        links: Anchor of each row, for addresses within a page.
        csv: All columns as CSV, which a page offers for download.
    """

    headings: tuple[Heading, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    caption: str = ""
    footnotes: tuple[str, ...] = ()
    name: str = ""
    chosen: int | None = None
    essential: int = 0
    sortable: bool = False
    gaps: tuple[int, ...] = ()
    series: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    csv: str = ""

    @cached_property
    def remarked(self) -> set[int]:
        """Indices of the columns with remarks, which a page shows in a column beside."""
        # Looked for once: for each cell of a page of 250 strategies, it took two minutes.
        found = set()
        for row in self.rows:
            for index, cell in enumerate(row):
                if isinstance(cell, Cell) and cell.remark:
                    found.add(index)
        return found

    def first(self, most: int) -> "Table":
        """The first rows, and the recommended row."""
        # Whoever reads a part of the table looks for what is advised.
        count = min(most, len(self.rows))
        places = [*range(count)]
        if self.chosen is not None and self.chosen >= most:
            places.append(self.chosen)
        return self.only(places)

    def only(self, places: Sequence[int]) -> "Table":
        """The rows at these places, in ascending order, with gaps where others are left out."""
        chosen = None
        if self.chosen in places:
            chosen = places.index(self.chosen)
        gaps = []
        expected = 0
        for index, place in enumerate(places):
            if place != expected:
                gaps.append(index)
            expected = place + 1
        # After the last place, others may be left out as well.
        if places and expected != len(self.rows):
            gaps.append(len(places))
        return replace(
            self,
            rows=_at(self.rows, places),
            series=_at(self.series, places),
            links=_at(self.links, places),
            chosen=chosen,
            gaps=tuple(gaps),
        )


def _at(values: tuple[T, ...], places: Sequence[int]) -> tuple[T, ...]:
    """The values at these places; none if there are no values."""
    if not values:
        return ()
    return tuple([values[place] for place in places])


@dataclass(frozen=True)
class Drawing:
    """A figure, or a function that makes it on demand, since a terminal shows none."""

    made: Figure | Callable[[], Figure]
    choices: tuple[Figure, ...] = ()
    """Further figures that a reader can select in the same place."""

    # So that `case Drawing(figure)` has the figure itself, also one that is made on demand.
    __match_args__ = ("figure",)

    @cached_property
    def figure(self) -> Figure:
        """The figure."""
        if isinstance(self.made, Figure):
            return self.made
        return self.made()


@dataclass(frozen=True)
class Photo:
    """Images shown side by side: PNG files, each with an alternative text."""

    caption: str
    images: tuple[tuple[bytes, str], ...]


@dataclass(frozen=True)
class Photos:
    """Photos, shown only on a page."""

    photos: tuple[Photo, ...]


@dataclass(frozen=True)
class Code:
    """Text to show verbatim, such as commands or logs."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Folded:
    """Details: collapsed on a page, shown like a section in other formats."""

    title: str
    blocks: tuple["Block", ...]
    name: str = ""
    page_only: bool = False
    """Whether formats other than a page leave it out."""


@dataclass(frozen=True)
class Section:
    """Blocks under a title; sections may nest."""

    title: str
    blocks: tuple["Block", ...]
    name: str = ""
    """Name for links; derived from the title if empty."""
    style: str = ""
    """Style on a page: "advice", "open", "figures" or "first figures"."""


Block = (
    Paragraph | FactList | Items | Table | Drawing | Photos | Code | Folded | Section
)


@dataclass(frozen=True)
class Document:
    """A complete document."""

    title: str
    blocks: tuple[Block, ...]
    subtitle: str = ""
    live: bool = False
    """Whether a page has a table of contents and draws its figures with scripts."""


def drawings(blocks: Sequence[Block]) -> Iterator[Drawing]:
    """All figures, in order."""
    for block in blocks:
        if isinstance(block, Drawing):
            yield block
        # Figures stand at any depth.
        elif isinstance(block, Folded | Section):
            yield from drawings(block.blocks)


def on_paper(blocks: Sequence[Block]) -> list[Block]:
    """The blocks shown in formats other than a page."""
    shown: list[Block] = []
    for block in blocks:
        # Without a fold, every run of a study would come before what follows them.
        page_only = isinstance(block, Folded) and block.page_only
        if not page_only and not isinstance(block, Photos):
            shown.append(block)
    return shown


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text into parts, each with whether it is code."""
    # A pattern with one group splits a text into plain and matched parts in turn.
    for index, part in enumerate(CODE.split(text)):
        if part:
            yield part, index % 2 == 1


def anchor(block: Section | Folded) -> str:
    """The block's anchor for links within a page."""
    title = block.title.lower()
    words = re.sub(r"[^a-z0-9]+", "-", title).strip("-")
    return block.name or words or "section"
