"""A document as a text, and as a file with its pictures beside it."""

import re
from collections.abc import Mapping
from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.files import write_atomically
from scalestudy.report.document import Document, drawings
from scalestudy.report.images import still

ENDINGS = {"markdown": ".md", "latex": ".tex", "html": ".html"}
"""Forms that a document is written in, with the ending of their files."""


def form_of(form: str | None, out: Path | None, default: str = "markdown") -> str:
    """The form that is asked for: by its name, else by the file's ending.

    Raises:
        UserError: There is none of this name.
    """
    if form is None:
        ending = out.suffix.lower() if out else ""
        return next((name for name, each in ENDINGS.items() if each == ending), default)
    if form not in ENDINGS:
        raise UserError(
            f"a format out of {', '.join(ENDINGS)}", repr(form), "Choose one of these with --format."
        )
    return form


def render_document(document: Document, form: str, pictures: Mapping[str, str] | None = None) -> str:
    """The document as a text.

    Args:
        document: What to write.
        form: One of `ENDINGS`.
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


def write_document(document: Document, form: str, out: Path) -> list[Path]:
    """Write a document into a file, and its figures into a folder beside it.

    Args:
        document: What to write.
        form: One of `ENDINGS`.
        out: The file. Figures are in `STEM-figures`: SVG for Markdown, PDF for LaTeX, none for HTML.

    Returns:
        All files, that of the document first.

    Raises:
        OSError: If one cannot be written.
    """
    written, addresses = [out], {}
    folder = out.parent / (re.sub(r"[^A-Za-z0-9]+", "-", out.stem).strip("-") + "-figures")
    for figure in drawings(document.blocks) if form != "html" else ():
        picture = still(figure)
        file = folder / f"{figure.name}.{'pdf' if form == 'latex' else 'svg'}"
        folder.mkdir(exist_ok=True)
        write_atomically(file, picture.pdf if form == "latex" else picture.svg)
        written.append(file)
        addresses[figure.name] = f"{folder.name}/{file.name}"
    write_atomically(out, render_document(document, form, addresses))
    return written
