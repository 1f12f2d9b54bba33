"""Render a document as Markdown or as a page that needs no network, and write it with its images.

The Markdown is GitHub Flavored Markdown (specification 0.29).
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalestudy.report.document import (
    Block,
    Code,
    Document,
    Drawing,
    FactList,
    Folded,
    Items,
    Paragraph,
    Section,
    Table,
    anchor,
    drawings,
    on_paper,
    pieces,
)
from scalestudy.report.figure import Picture, config, data_uri, still, vega_lite
from scalestudy.util.errors import UserError
from scalestudy.util.files import make_inside, write_atomically
from scalestudy.util.own_package import version
from scalestudy.util.targets import write_named

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


MOST_ROWS = 1000
"""Largest number of table rows on a page; the formats for programs hold all."""
SPECIAL = re.compile(r"(https?://[^\s<>|`]+)|([\\`*_{}\[\]<>#|~$])")
"""Characters with a meaning in Markdown; those within an address are left alone."""
FORMS = ("markdown", "html")
"""Formats in which a document can be written."""
ENDINGS = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".html": "html",
    ".htm": "html",
}


def html(document: Document, pictures: Mapping[str, Picture] | None = None) -> str:
    """Render a document as a page for screens, phones and paper; `pictures` are its drawn figures by name."""
    shown = list(drawings(document.blocks))
    light, dark = {}, {}
    for drawing in shown:
        figure = drawing.figure
        light[figure.name] = still(figure)
        # Scripts draw a live page's figures in the reader's theme.
        if not document.live:
            dark[figure.name] = still(figure, dark=True)
    light |= dict(pictures or {})
    bundle = charts = ""
    if document.live and shown:
        bundle = _vega()
        charts = script_json(_charts(document))
    contents = []
    for block in document.blocks:
        if isinstance(block, Section | Folded):
            contents.append(block)
    file_name = re.sub(r"[^A-Za-z0-9._-]+", "-", document.title).strip("-.")
    page = (
        templates()
        .get_template("document.html.j2")
        .render(
            document=document,
            version=version(),
            light=light,
            dark=dark,
            most=MOST_ROWS,
            contents=contents,
            bundle=bundle,
            charts=charts,
            name=_once("{}-{}"),
            label=_once("{} ({})"),
            file_name=file_name or "results",
        )
    )
    # Jinja drops the end of a template's last line.
    return page + "\n"


@cache
def templates() -> "jinja2.Environment":
    """The templates of pages."""
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("scalestudy.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # A misspelt name is an error, not an empty place on the page.
        undefined=jinja2.StrictUndefined,
    )
    templates.filters |= {
        "data_uri": data_uri,
        "marked": _mark_up,
        "anchor": anchor,
        "kind": lambda block: type(block).__name__,
    }
    return templates


def _once(form: str) -> Callable[[str], str]:
    """Return a function that makes repeated names unique, adding a number with `form`."""
    seen: Counter[str] = Counter()

    def numbered(name: str) -> str:
        seen[name.casefold()] += 1
        count = seen[name.casefold()]
        if count == 1:
            return name
        return form.format(name, count)

    return numbered


def _mark_up(text: str) -> "Markup":
    from markupsafe import Markup, escape

    marked = Markup("")
    for part, code in pieces(text):
        if code:
            marked += Markup("<code>{}</code>").format(part)
        else:
            marked += escape(part)
    return marked


def _charts(document: Document) -> dict[str, Any]:
    """Data for the scripts: themes, specifications with titles and captions, and datasets without repeats."""
    datasets: dict[str, Any] = {}
    figures = {}
    for drawing in drawings(document.blocks):
        for figure in (drawing.figure, *drawing.choices):
            spec = dict(figure.spec)
            spec.pop("title", None)  # the page shows it as text
            # Figures that share their records name one dataset, which the page holds once.
            datasets |= spec.get("datasets", {})
            spec["datasets"] = list(spec.get("datasets", {}))
            figures[figure.name] = {
                "title": figure.title,
                "caption": figure.caption,
                "spec": spec,
            }
    light = config() | {"background": "transparent"}
    return {
        "light": light,
        "dark": config(dark=True),
        "figures": figures,
        "datasets": datasets,
    }


def script_json(value: Any) -> str:
    """JSON that is safe inside a `<script>` element."""
    text = json.dumps(
        value,
        ensure_ascii=False,
        separators=(",", ":"),
        # NaN is no JSON: a browser would refuse all of the page's data.
        allow_nan=False,
    )
    # "</script" would end the element; JavaScript once took both separators for ends of lines.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that is safe inside a `<script>` element."""
    import vl_convert

    # The snippet is optional; the type stubs say otherwise.
    script: str = vl_convert.javascript_bundle(vl_version=vega_lite())  # type: ignore[call-arg]
    # Inside a script's strings, "<\/script" means the same but does not end the element.
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


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

    def backslashed(match: re.Match[str]) -> str:
        return match[1] or f"\\{match[2]}"

    parts = []
    # An empty line would end a paragraph, and four spaces at its start make a block of code.
    for part, code in pieces(" ".join(text.split())):
        parts.append(f"`{part}`" if code else SPECIAL.sub(backslashed, part))
    return "".join(parts)


def _blocks(
    blocks: Sequence[Block],
    pictures: Mapping[str, str],
    level: int,
) -> list[str]:
    """The lines of blocks, with an empty line before each."""
    every = []
    for block in on_paper(blocks):
        if lines := _block(block, pictures, level):
            every += ["", *lines]
    return every


def _block(block: Block, pictures: Mapping[str, str], level: int) -> list[str]:
    match block:
        case Paragraph(text):
            return [escaped(text)]
        case Items(items, ordered):
            lines = []
            for number, item in enumerate(items, start=1):
                mark = f"{number}." if ordered else "-"
                lines.append(f"{mark} {escaped(item)}")
            return lines
        case FactList(rows):
            lines = []
            for name, text in rows:
                lines.append(f"- **{escaped(name)}:** {escaped(text)}")
            return lines
        case Code(text, language):
            # A fence is longer than any row of backticks in the code.
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(3, 1 + longest)
            return [f"{fence}{language}", *text.splitlines(), fence]
        case Table():
            return _table(block)
        case _:
            return _container(block, pictures, level)


def _container(block: Block, pictures: Mapping[str, str], level: int) -> list[str]:
    match block:
        case Folded(title, inner):
            # Markdown has no folded parts of its own; GitHub and GitLab show those of HTML.
            head = ["<details>", f"<summary>{escape(title)}</summary>"]
            return [*head, *_blocks(inner, pictures, level), "", "</details>"]
        case Section(title, inner):
            return [
                f"{'#' * min(level, 6)} {escaped(title)}",
                *_blocks(inner, pictures, level + 1),
            ]
        case Drawing(figure):
            address = pictures.get(figure.name)
            title = escaped(figure.title)
            caption = f"**{title}.** {escaped(figure.caption)}"
            if not address:
                return [caption]
            return [f"![{title}]({address})", "", caption]
    return []


def _table(table: Table) -> list[str]:
    lines = []
    if table.caption:
        lines += [escaped(table.caption), ""]
    names, rules = [], []
    for heading in table.headings:
        name = heading.name
        if heading.unit:
            name += f" ({heading.unit})"
        names.append(escaped(name))
        rules.append("---:" if heading.numeric else "---")
    lines += [_line(names), _line(rules)]
    for index, row in enumerate(table.rows):
        cells = [escaped(str(cell)) for cell in row]
        if index == table.chosen:
            cells[0] += " ←"
        lines.append(_line(cells))
    notes = []
    for number, note in enumerate(table.footnotes, start=1):
        notes.append(f"[{number}] {escaped(note)}")
    if notes:
        # Two spaces at the end of a line break it.
        lines += ["", "  \n".join(notes)]
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def form_by_ending(
    form: str | None,
    out: Path | None,
    forms: Collection[str],
    default: str,
) -> str:
    """Return the requested format: by name, else by the file's extension, else the default.

    Raises:
        UserError: There is no format of this name, or none with the file's extension.
    """
    if form is None:
        if out is None or out.suffix.lower() in ("", ".txt"):
            return default
        form = ENDINGS.get(out.suffix.lower(), "")
        if form not in forms:
            raise _unknown_ending(out, forms)
    if form not in forms:
        raise UserError(
            f"one of the formats {', '.join(forms)}",
            repr(form),
            "Choose one of these with --format.",
        )
    return form


def _unknown_ending(out: Path, forms: Collection[str]) -> UserError:
    known = []
    for ending, name in ENDINGS.items():
        if name in forms:
            known.append(ending)
    action = "Name it so, or name a format with --format."
    # Pages have a style for paper, so that a browser makes the PDF.
    if out.suffix.lower() == ".pdf":
        page = out.with_suffix(".html")
        action = f"Print a page: --out {page}, then `chromium --headless --print-to-pdf={out} {page}`."
    return UserError(f"a file that ends in {', '.join(known)}", f"--out {out}", action)


def check_page_name(file: Path) -> None:
    """Refuse a file name that is not an HTML page.

    Raises:
        UserError: The extension is not .html or .htm.
    """
    if file.suffix.lower() not in (".html", ".htm"):
        raise UserError("a file that ends in .html", str(file), "Change its ending.")


def write_document(document: Document, form: str, out: Path) -> list[Path]:
    """Write a document into a file, and its figures into a folder next to it.

    Figures of Markdown are in `STEM-figures`, as SVG. Returns all files, the document first.

    Raises:
        OSError: A file cannot be written.
    """
    if form == "html":
        write_named(out, html(document))
        return [out]
    # An address in Markdown ends at a space or a bracket.
    stem = re.sub(r"[^A-Za-z0-9]+", "-", out.stem).strip("-")
    folder = out.parent / f"{stem}-figures"
    files, addresses = {}, {}
    for drawing in drawings(document.blocks):
        # In the loop, so that a document without figures leaves no empty folder.
        make_inside(folder)
        name = drawing.figure.name
        files[name] = folder / f"{name}.svg"
        addresses[name] = f"{folder.name}/{name}.svg"
        write_atomically(files[name], still(drawing.figure).svg)
    write_named(out, markdown(document, addresses))
    return [out, *files.values()]
