"""A page said once, whatever it is read in: renderers turn its blocks into Markdown, LaTeX, HTML, text.

Texts are plain: what stands between `backticks` is code, and renderers escape everything else.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
    """Rows under headings; each row has as many cells as there are headings."""

    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    footnotes: tuple[str, ...] = ()
    name: str = ""
    """By which other places refer to it."""


@dataclass(frozen=True)
class Drawing:
    """A figure in its place, or what makes it once it is asked for: a terminal shows none."""

    made: Figure | Callable[[], Figure]

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


@dataclass(frozen=True)
class Section:
    """Blocks under a title; sections may nest."""

    title: str
    blocks: tuple["Block", ...]
    name: str = ""
    """By which other places refer to it; made of the title when empty."""


Block = Paragraph | Items | Table | Drawing | Photos | Code | Folded | Section


@dataclass(frozen=True)
class Document:
    """A whole page."""

    title: str
    blocks: tuple[Block, ...]
    subtitle: str = ""


def drawings(blocks: Sequence[Block]) -> Iterator[Figure]:
    """All figures, in order."""
    for block in blocks:
        if isinstance(block, Drawing):
            yield block.figure
        elif isinstance(block, Folded | Section):
            yield from drawings(block.blocks)


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """A text in parts, each with whether it is code."""
    for index, part in enumerate(CODE.split(text)):
        if part:
            yield part, index % 2 == 1


def anchor(section: Section) -> str:
    """The name by which a page's own links reach it."""
    return section.name or re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-") or "section"
