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
    """A figure as the contents of files, each drawn by vl-convert when it is first asked for.

    Attributes:
        figure: What is drawn.
        dark: Whether for a dark ground, instead of on white.
    """

    figure: Figure
    dark: bool = False

    @cached_property
    def svg(self) -> str:
        """An SVG file."""
        import vl_convert

        spec: dict[str, Any] = self.figure.spec | {"config": config(self.dark)}
        svg: str = vl_convert.vegalite_to_svg(spec, vl_version=vega_lite())
        return svg

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


def vega_lite() -> str:
    """The version of Vega-Lite's specification that Altair writes: "6.4" of "v6.4.1"."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def draw(figure: Figure, *, dark: bool = False) -> Picture:
    """A figure on white or for a dark ground."""
    return Picture(figure, dark)


def still(figure: Figure, *, dark: bool = False) -> Picture:
    """The same without its title, for pages that write it themselves."""
    spec = {key: value for key, value in figure.spec.items() if key != "title"}
    return draw(replace(figure, spec=spec), dark=dark)


def data_uri(content: bytes | str, kind: str) -> str:
    """The content as an address of its own."""
    data = content.encode() if isinstance(content, str) else content
    return f"data:{kind};base64,{b64encode(data).decode()}"
