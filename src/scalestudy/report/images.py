"""Figures as pictures, without a browser."""

from base64 import b64encode
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from scalestudy.report.figure import Figure
from scalestudy.report.style import config

PNG_SCALE = 2.0


@dataclass(frozen=True)
class Picture:
    """A drawn figure: the text of an SVG file, and the bytes of others made of it once they are asked for."""

    figure: Figure
    svg: str

    @cached_property
    def png(self) -> bytes:
        """A PNG file."""
        import vl_convert

        picture: bytes = vl_convert.svg_to_png(self.svg, scale=PNG_SCALE)
        return picture

    @cached_property
    def pdf(self) -> bytes:
        """A PDF file of one page."""
        import vl_convert

        page: bytes = vl_convert.svg_to_pdf(self.svg)
        return page


def draw(figure: Figure, *, dark: bool = False) -> Picture:
    """Draw a figure with vl-convert, on white or for a dark ground."""
    import altair
    import vl_convert

    spec: dict[str, Any] = figure.spec | {"config": config(dark)}
    # Vega-Lite's specification version is the one that Altair wrote for: "v6.4.1" -> "6.4".
    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return Picture(figure, vl_convert.vegalite_to_svg(spec, vl_version=version))


def still(figure: Figure, *, dark: bool = False) -> Picture:
    """The same without its title, for pages that write it themselves."""
    spec = {key: value for key, value in figure.spec.items() if key != "title"}
    return draw(replace(figure, spec=spec), dark=dark)


def data_uri(content: bytes | str, kind: str) -> str:
    """The content as an address of its own."""
    data = content.encode() if isinstance(content, str) else content
    return f"data:{kind};base64,{b64encode(data).decode()}"
