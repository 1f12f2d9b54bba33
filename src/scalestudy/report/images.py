"""Draw figures as image files, without a browser."""

from base64 import b64encode
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from scalestudy.report.figure import Figure
from scalestudy.report.style import config

PNG_SCALE = 2.0


@dataclass(frozen=True)
class Picture:
    """A figure as the contents of image files, each drawn by vl-convert on first access.

    Attributes:
        figure: The figure.
        dark: Whether it is for a dark background, instead of white.
    """

    figure: Figure
    dark: bool = False

    @cached_property
    def svg(self) -> str:
        """Content of an SVG file."""
        import vl_convert

        spec: dict[str, Any] = self.figure.spec | {"config": config(self.dark)}
        svg: str = vl_convert.vegalite_to_svg(spec, vl_version=vega_lite())
        return svg

    @cached_property
    def png(self) -> bytes:
        """Content of a PNG file."""
        import vl_convert

        picture: bytes = vl_convert.svg_to_png(self.svg, scale=PNG_SCALE)
        return picture

    @cached_property
    def pdf(self) -> bytes:
        """Content of a PDF file with one page."""
        import vl_convert

        page: bytes = vl_convert.svg_to_pdf(self.svg)
        return page


def vega_lite() -> str:
    """Version of the Vega-Lite specification that Altair writes: "6.4" for "v6.4.1"."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def still(figure: Figure, *, dark: bool = False) -> Picture:
    """The picture of a figure without its title, for pages that show the title as text."""
    spec = {key: value for key, value in figure.spec.items() if key != "title"}
    return Picture(replace(figure, spec=spec), dark)


def data_uri(content: bytes | str, kind: str) -> str:
    """Encode the content as a data URI."""
    data = content.encode() if isinstance(content, str) else content
    return f"data:{kind};base64,{b64encode(data).decode()}"
