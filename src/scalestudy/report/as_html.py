"""A document as an HTML page that holds all it shows, and as a part of other pages."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

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
    anchor,
    drawings,
    pieces,
)
from scalestudy.report.gallery import environment
from scalestudy.report.images import still

if TYPE_CHECKING:
    from markupsafe import Markup

KINDS = {Paragraph: "paragraph", Items: "items", Table: "table", Drawing: "drawing", Photos: "photos",
         Code: "code", Folded: "folded", Section: "section"}  # fmt: skip


def html(document: Document) -> str:
    """The document as a page that needs no network, for screens, phones and paper."""
    from scalestudy import __version__

    template = environment().get_template("document.html.j2")
    return template.render(document=document, body=html_blocks(document.blocks), version=__version__) + "\n"


def html_blocks(blocks: Sequence[Block], level: int = 2) -> "Markup":
    """Blocks as HTML, to stand in a page whose style has that of documents (`document_style.css`).

    Args:
        blocks: What to write.
        level: Of the headings of its sections.
    """
    from markupsafe import Markup

    pictures = {figure.name: (still(figure), still(figure, dark=True)) for figure in drawings(blocks)}
    template = environment().get_template("document_blocks.html.j2")
    name, label = _once("{}-{}"), _once("{} ({})")

    def inner(blocks: Sequence[Block], level: int) -> Markup:
        return Markup(
            template.render(
                blocks=blocks, level=level, pictures=pictures, kind_of=_kind, marked=_marked, anchor=anchor,
                inner=inner, name=name, label=label,
            )
        )  # fmt: skip

    return inner(blocks, level)


def _once(form: str) -> Callable[[str], str]:
    """What tells apart names that come again: the second and later ones get their number by `form`."""
    seen: Counter[str] = Counter()

    def told(name: str) -> str:
        count = seen[name.casefold()] = seen[name.casefold()] + 1
        return name if count == 1 else form.format(name, count)

    return told


def _kind(block: Block) -> str:
    return KINDS[type(block)]


def _marked(text: str) -> "Markup":
    """The text, escaped, code as code."""
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup("<code>{}</code>").format(part) if code else escape(part) for part, code in pieces(text)
    )
