"""Figures as data, their style, and their image files, drawn without a browser.

The colours are based on Okabe and Ito, "Color universal design" (2008), and can be distinguished with any
colour vision; all have a contrast of at least 3:1 on white and on dark (WCAG 2.2, 1.4.11). A strategy has the
same colour and shape in every figure and every report.
"""

from base64 import b64encode
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scalestudy.plugins.strategies import REGISTRY, traits

if TYPE_CHECKING:
    import altair as alt


COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#C08000",
    "#1793B5",
    "#6E7781",
    "#7D8F00",
)
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-left",
)
RAMP = ("#6A5ACD", "#156DB7", "#008C8C", "#5C9E45", "#C08000", "#D55E00")
"""From violet through green to orange."""
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"
WIDTH, HEIGHT = 640, 360
PNG_SCALE = 2.0


def colour_and_shape(
    names: list[str],
    by_strategy: bool,
    title: str,
) -> "tuple[alt.Color, alt.Shape]":
    """Colour and shape of series: of their strategies, or in order; with a legend if there are several."""
    import altair as alt

    colours, shapes = [], []
    for place, name in enumerate(names):
        mark = None
        # Numbers from other tools may name a strategy of their own, which has no mark.
        if by_strategy and name in REGISTRY:
            mark = traits(name).mark
        if mark is None:
            colour = COLOURS[place % len(COLOURS)]
            mark = (colour, SHAPES[place % len(SHAPES)])
        colour, shape = mark
        colours.append(colour)
        shapes.append(shape)
    legend = alt.Legend(symbolOpacity=1) if len(names) > 1 else None
    return (
        alt.Color(
            "series:N",
            title=title,
            scale=alt.Scale(domain=names, range=colours),
            legend=legend,
        ),
        alt.Shape(
            "series:N",
            title=title,
            scale=alt.Scale(domain=names, range=shapes),
            legend=legend,
        ),
    )


def ramp(number: int) -> list[str]:
    """Colours from few workers to many, six distinct ones at most, readable on white and on dark."""
    colours = []
    # The whole ramp even for few numbers, so that their colours are as far apart as they can be.
    for place in range(number):
        steps = max(1, number - 1)
        along = place * (len(RAMP) - 1) / steps
        colours.append(RAMP[round(along)])
    return colours


def config(dark: bool = False) -> dict[str, Any]:
    """Vega-Lite configuration that all figures share."""
    ink, soft, faint, background = "#1B1F24", "#57606A", "#E4E7EA", "#FFFFFF"
    if dark:
        ink, soft, faint = "#E6EAEE", "#A9B2BB", "#353C44"
        background = "transparent"
    return {
        "background": background,
        "font": FONT,
        "padding": {
            "left": 14,
            "right": 26,
            "top": 6,
            "bottom": 6,
        },  # substitute fonts are wider
        "view": {"stroke": None},
        "title": {
            "color": ink,
            "fontSize": 16,
            "fontWeight": 600,
            "anchor": "start",
            "offset": 12,
        },
        "axis": {
            "labelColor": soft,
            "labelFontSize": 13,
            "titleColor": ink,
            "titleFontSize": 13,
            "titleFontWeight": 500,
            "titlePadding": 10,
            "gridColor": faint,
            "domainColor": soft,
            "tickColor": soft,
        },
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
        "legend": {
            "orient": "top",
            "labelColor": ink,
            "labelFontSize": 13,
            "titleColor": soft,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "symbolSize": 90,
            "labelLimit": 280,
            "columnPadding": 16,
            "layout": {
                "top": {"anchor": "start", "direction": "vertical", "margin": 6}
            },
        },
        "header": {
            "labelColor": ink,
            "labelFontSize": 14,
            "labelFontWeight": 600,
            "title": None,
        },
        # These apply only to marks without their own colour: reference lines and their labels.
        "line": {"color": soft},
        "rule": {"color": soft},
        "text": {"color": soft, "fontSize": 12},
    }


@dataclass(frozen=True)
class Figure:
    """One figure: a file name without extension, its texts, and its Vega-Lite specification."""

    name: str
    title: str
    caption: str
    """How to read it."""
    spec: dict[str, Any]
    """Without colours for background and text, which come from `config`."""
    wide: bool = False
    """Whether it needs the full width of a page."""
    group: str = ""
    """Figures of a group share one place: a page shows the selected one, initially the first."""
    choice: str = ""
    """Label for selecting it: "by epochs"."""


def data(records: list[dict[str, Any]]) -> "alt.InlineData":
    """Wrap records as the data of a chart."""
    import altair as alt

    source = alt.InlineData(values=records)
    # Altair copies a chart with all its records at each step, which would take most of the time for a page.
    object.__setattr__(source, "__deepcopy__", lambda _: source)
    return source


def tooltip(**titles: str) -> "list[alt.Tooltip]":
    """Tooltip fields with their titles; a title may end in a number format: "Share|.1%"."""
    import altair as alt

    made = []
    for field, words in titles.items():
        title, _, form = words.partition("|")
        if form:
            made.append(alt.Tooltip(f"{field}:Q", title=title, format=form))
        else:
            made.append(alt.Tooltip(f"{field}:N", title=title))
    return made


def figure(
    name: str,
    title: str,
    chart: Any,
    caption: str,
    wide: bool = False,
    group: str = "",
    choice: str = "",
) -> Figure:
    """Make a figure from an Altair chart."""
    # Validating a chart takes longer than drawing it, so only tests do it.
    spec = chart.properties(title=title).to_dict(validate=False)
    # The page has its own theme and needs no schema address.
    for key in ("$schema", "config", "usermeta"):
        spec.pop(key, None)
    return Figure(name, title, caption, spec, wide, group, choice)


@dataclass(frozen=True)
class Picture:
    """A figure as the contents of image files, each drawn by vl-convert on first access.

    Attributes:
        dark: Whether it is for a dark background, instead of white.
    """

    figure: Figure
    dark: bool = False

    @cached_property
    def svg(self) -> str:
        """Content of an SVG file."""
        import vl_convert

        spec: dict[str, Any] = dict(self.figure.spec)
        spec["config"] = config(self.dark)
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

    # vl-convert knows versions by their first two numbers.
    major, minor, *_ = altair.SCHEMA_VERSION.lstrip("v").split(".")
    return f"{major}.{minor}"


def still(figure: Figure, *, dark: bool = False) -> Picture:
    """The picture of a figure without its title, for pages that show the title as text."""
    spec = dict(figure.spec)
    spec.pop("title", None)
    return Picture(replace(figure, spec=spec), dark)


def data_uri(content: bytes | str, kind: str) -> str:
    """Encode the content as a data URI."""
    if isinstance(content, str):
        content = content.encode()
    return f"data:{kind};base64,{b64encode(content).decode()}"
