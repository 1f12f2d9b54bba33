"""A document as a text, and as a file with its pictures beside it, in the form that its ending says."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from scalestudy.report.document import Document, drawings
from scalestudy.report.images import Picture, still
from scalestudy.util.errors import UserError
from scalestudy.util.files import write_atomically

FORMS = ("markdown", "latex", "html")
"""In which a document is written."""
BESIDE = {"markdown": "svg", "latex": "pdf"}
"""Kind of the pictures that a form refers to; a page holds its own."""


ENDINGS = {
    ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex", ".html": "html", ".htm": "html",
    ".parquet": "parquet",
}  # fmt: skip


def form_by_ending(form: str | None, out: Path | None, forms: Collection[str], default: str) -> str:
    """The form that is asked for: by its name, else by the ending of the file, else the default.

    Raises:
        UserError: There is none of this name, or the file ends as none of them does.
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
    """The document as a text.

    Args:
        document: What to write.
        form: One of `FORMS`.
        addresses: Of each figure's file by the figure's name; a page in HTML holds its own.
        pictures: What a page holds, where it is drawn already.
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
    """Files of pictures beside a document by their names; none for a form that holds its own."""
    return {name: f"{name}.{BESIDE[form]}" for name in names} if form in BESIDE else {}


def check_page_name(file: Path) -> None:
    """Refuse a file that is no page.

    Raises:
        UserError: Its name ends otherwise.
    """
    if file.suffix.lower() not in (".html", ".htm"):
        raise UserError("a file that ends in .html", str(file), "Change its ending.")


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
    folder = out.parent / (re.sub(r"[^A-Za-z0-9]+", "-", out.stem).strip("-") + "-figures")
    figures = {drawing.figure.name: drawing.figure for drawing in drawings(document.blocks)}
    files = {name: folder / file for name, file in beside(figures, form).items()}
    for name, file in files.items():
        folder.mkdir(exist_ok=True)
        write_atomically(file, getattr(still(figures[name]), BESIDE[form]))
    addresses = {name: f"{folder.name}/{file.name}" for name, file in files.items()}
    write_atomically(out, render_document(document, form, addresses))
    return [out, *files.values()]
