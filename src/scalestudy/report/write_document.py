"""A document as a text, and as a file with its pictures beside it."""

import re
from collections.abc import Mapping
from pathlib import Path

from scalestudy.report.document import Document, drawings
from scalestudy.report.images import still
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

FORMS = ("markdown", "latex", "html")
"""In which a document is written."""
BESIDE = {"markdown": "svg", "latex": "pdf"}
"""Kind of the pictures that a form refers to; a page holds its own."""


def render_document(document: Document, form: str, pictures: Mapping[str, str] | None = None) -> str:
    """The document as a text.

    Args:
        document: What to write.
        form: One of `FORMS`.
        pictures: Address of each figure's file by the figure's name; a page in HTML holds its own.
    """
    if form == "latex":
        from scalestudy.report.as_latex import latex

        return latex(document, pictures)
    if form == "html":
        from scalestudy.report.as_html import html

        return html(document)
    from scalestudy.report.as_markdown import markdown

    return markdown(document, pictures)


def check_page_name(file: Path) -> None:
    """Refuse a file that is no page.

    Raises:
        UserError: Its name ends otherwise.
    """
    if file.suffix.lower() not in (".html", ".htm"):
        raise UserError("a file that ends in .html", str(file), "Name it so.")


def write_document(document: Document, form: str, out: Path) -> list[Path]:
    """Write a document into a file, and its figures into a folder beside it.

    Args:
        document: What to write.
        form: One of `FORMS`.
        out: The file. Figures are in `STEM-figures`: SVG for Markdown, PDF for LaTeX, none for HTML.

    Returns:
        All files, that of the document first.

    Raises:
        OSError: If one cannot be written.
    """
    written, addresses = [out], {}
    folder = out.parent / (re.sub(r"[^A-Za-z0-9]+", "-", out.stem).strip("-") + "-figures")
    for drawing in drawings(document.blocks) if form in BESIDE else ():
        figure = drawing.figure
        file = folder / f"{figure.name}.{BESIDE[form]}"
        folder.mkdir(exist_ok=True)
        write_atomically(file, getattr(still(figure), BESIDE[form]))
        written.append(file)
        addresses[figure.name] = f"{folder.name}/{file.name}"
    write_atomically(out, render_document(document, form, addresses))
    return written
