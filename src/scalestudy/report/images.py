"""Figures as pictures, without a browser."""

import re
from base64 import b64encode
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from scalestudy.report.figure import Figure
from scalestudy.report.style import config

PNG_SCALE = 2.0
WIDER = 0.22
"""By how much labels on the left may be longer in another font."""
BESIDE = 0.04
"""The same for names on the right, as a share of the figure."""


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
        import altair
        import vl_convert

        spec: dict[str, Any] = self.figure.spec | {"config": config(self.dark)}
        # Vega-Lite's specification version is the one that Altair wrote for: "v6.4.1" -> "6.4".
        version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
        return with_room(vl_convert.vegalite_to_svg(spec, vl_version=version))

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


def with_room(svg: str) -> str:
    """A drawing with room beside it for letters that are wider than those it was measured with.

    It is measured in the first of the style's fonts that is known here, and read where others are: in DejaVu
    Sans the same label is a fifth longer than in Arial, and an image cuts off what lies outside of it.
    """
    size = re.match(r'<svg\b[^>]* width="([\d.]+)" height="([\d.]+)" viewBox="0 0 [\d.]+ [\d.]+">', svg)
    if size is None:
        return svg
    width, height = (float(each) for each in size.groups())
    labels = re.search(r'transform="translate\(([\d.]+),', svg)
    left, right = round(WIDER * float(labels[1]) if labels else 0.0), round(width * BESIDE)
    wide = left + width + right
    head = size[0].replace(f'width="{size[1]}"', f'width="{wide:g}"')
    head = head.replace(f'viewBox="0 0 {size[1]} ', f'viewBox="{-left} 0 {wide:g} ')
    ground = f'<rect width="{size[1]}" height="{size[2]}"'
    rest = svg[size.end() :].replace(ground, f'<rect x="{-left}" width="{wide:g}" height="{height:g}"', 1)
    return head + rest


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
