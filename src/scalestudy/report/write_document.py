"""Write a document in the format given by a file's extension, with its images next to it."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from scalestudy.report.document import Document, drawings
from scalestudy.report.images import Picture, still
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

FORMS = ("markdown", "latex", "html")
"""Formats in which a document can be written."""
BESIDE = {"markdown": "svg", "latex": "pdf"}
"""Type of the image files that a format refers to; an HTML page embeds its images."""


ENDINGS = {
    ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex", ".html": "html", ".htm": "html",
    ".parquet": "parquet",
}  # fmt: skip


def form_by_ending(form: str | None, out: Path | None, forms: Collection[str], default: str) -> str:
    """Return the requested format: by name, else by the file's extension, else the default.

    Raises:
        UserError: There is no format of this name, or none with the file's extension.
    """
    if form is None:
        suffix = out.suffix.lower() if out else ""
        if suffix in ("", ".txt"):
            return default
        form = ENDINGS.get(suffix, "")
        if form not in forms:
            known = (ending for ending, name in ENDINGS.items() if name in forms)
            page = out.with_suffix(".html") if out else None
            print_it = f"Print a page: --out {page}, then `chromium --headless --print-to-pdf={out} {page}`."
            action = print_it if suffix == ".pdf" else "Name it so, or name a format with --format."
            raise UserError(f"a file that ends in {', '.join(known)}", f"--out {out}", action)
    if form not in forms:
        raise UserError(
            f"one of the formats {', '.join(forms)}", repr(form), "Choose one of these with --format."
        )
    return form


def render_document(
    document: Document,
    form: str,
    addresses: Mapping[str, str] | None = None,
    pictures: Mapping[str, Picture] | None = None,
) -> str:
    """Render a document as text.

    Args:
        document: The document.
        form: One of `FORMS`.
        addresses: Address of each figure's file by the figure's name; an HTML page embeds them instead.
        pictures: Figures to embed in a page, if already drawn.
    """
    if form == "latex":
        from scalestudy.report.as_latex import latex

        return latex(document, addresses)
    if form == "html":
        from scalestudy.report.as_html import html

        return html(document, pictures)
    from scalestudy.report.as_markdown import markdown

    return markdown(document, addresses)


def beside(names: Iterable[str], form: str) -> dict[str, str]:
    """Image files next to a document by name; empty for a format that embeds them."""
    return {name: f"{name}.{BESIDE[form]}" for name in names} if form in BESIDE else {}


def check_page_name(file: Path) -> None:
    """Refuse a file name that is not an HTML page.

    Raises:
        UserError: The extension is not .html or .htm.
    """
    if file.suffix.lower() not in (".html", ".htm"):
        raise UserError("a file that ends in .html", str(file), "Change its ending.")


def write_document(document: Document, form: str, out: Path) -> list[Path]:
    """Write a document into a file, and its figures into a folder next to it.

    Args:
        document: The document.
        form: One of `FORMS`.
        out: The file. Figures are in `STEM-figures`: SVG for Markdown, PDF for LaTeX, none for HTML.

    Returns:
        All files, the document first.

    Raises:
        OSError: A file cannot be written.
    """
    folder = out.parent / (re.sub(r"[^A-Za-z0-9]+", "-", out.stem).strip("-") + "-figures")
    figures = {drawing.figure.name: drawing.figure for drawing in drawings(document.blocks)}
    files = {name: folder / file for name, file in beside(figures, form).items()}
    for name, file in files.items():
        folder.mkdir(exist_ok=True)
        write_atomically(file, getattr(still(figures[name]), BESIDE[form]))
    addresses = {name: f"{folder.name}/{file.name}" for name, file in files.items()}
    write_atomically(out, render_document(document, form, addresses))
    return [out, *files.values()]
