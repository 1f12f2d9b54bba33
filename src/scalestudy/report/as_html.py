"""Render a document as a self-contained HTML page that needs no network."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from scalestudy.report.document import Block, Document, Folded, Section, anchor, drawings, pieces
from scalestudy.report.images import Picture, data_uri, still, vega_lite
from scalestudy.report.style import config

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

MOST_ROWS = 1000
"""Largest number of table rows on a page; the formats for programs hold all."""


def html(document: Document, pictures: Mapping[str, Picture] | None = None) -> str:
    """Render a document as a page for screens, phones and paper; `pictures` are its drawn figures by name."""
    from scalestudy import __version__

    shown = list(drawings(document.blocks))
    light = {drawing.figure.name: still(drawing.figure) for drawing in shown} | dict(pictures or {})
    dark = {} if document.live else {d.figure.name: still(d.figure, dark=True) for d in shown}
    scripts = document.live and bool(shown)
    page = (
        _templates()
        .get_template("document.html.j2")
        .render(
            document=document, version=__version__, light=light, dark=dark, most=MOST_ROWS,
            contents=[block for block in document.blocks if isinstance(block, Section | Folded)],
            bundle=_vega() if scripts else "",
            charts=script_json(_charts(document)) if scripts else "",
            name=_once("{}-{}"), label=_once("{} ({})"),
        )
    )  # fmt: skip
    return page + "\n"


@cache
def _templates() -> "jinja2.Environment":
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("scalestudy.report"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    templates.filters |= {"data_uri": data_uri, "marked": _marked, "anchor": anchor, "kind": _kind}
    return templates


def _once(form: str) -> Callable[[str], str]:
    """Return a function that makes repeated names unique, adding a number with `form`."""
    seen: Counter[str] = Counter()

    def numbered(name: str) -> str:
        count = seen[name.casefold()] = seen[name.casefold()] + 1
        return name if count == 1 else form.format(name, count)

    return numbered


def _kind(block: Block) -> str:
    return type(block).__name__


def _marked(text: str) -> "Markup":
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup("<code>{}</code>").format(part) if code else escape(part) for part, code in pieces(text)
    )


def _charts(document: Document) -> dict[str, Any]:
    """Data for the scripts: themes, specifications with titles and captions, and datasets without repeats."""
    datasets: dict[str, Any] = {}
    figures = {}
    for drawing in drawings(document.blocks):
        for figure in (drawing.figure, *drawing.choices):
            spec = {key: value for key, value in figure.spec.items() if key != "title"}
            datasets |= spec.get("datasets", {})
            spec["datasets"] = list(spec.get("datasets", {}))
            figures[figure.name] = {"title": figure.title, "caption": figure.caption, "spec": spec}
    light = config() | {"background": "transparent"}
    return {"light": light, "dark": config(dark=True), "figures": figures, "datasets": datasets}


def script_json(value: Any) -> str:
    """JSON that is safe inside a `<script>` element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
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
