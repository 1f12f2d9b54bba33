"""Colours, shapes and fonts of the figures, on white and on a dark background.

The colours are based on Okabe and Ito, "Color universal design" (2008), and can be distinguished with any
colour vision. A strategy has the same colour and shape in every figure and every report.
"""

from typing import TYPE_CHECKING, Any

from scalestudy.study.strategies import REGISTRY, traits

if TYPE_CHECKING:
    import altair as alt

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6E7781", "#B8A800")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-left")
RAMP = ("#6A5ACD", "#156DB7", "#008C8C", "#5C9E45", "#E39200", "#D55E00")
"""From violet through green to orange."""
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"


def series_style(names: list[str], by_strategy: bool) -> tuple[list[str], list[str]]:
    """Colours and shapes of a figure's series: those of their strategies, or in order if not by strategy."""
    known = [traits(name) if by_strategy and name in REGISTRY else None for name in names]
    return (
        [(kind and kind.colour) or COLOURS[place % len(COLOURS)] for place, kind in enumerate(known)],
        [(kind and kind.shape) or SHAPES[place % len(SHAPES)] for place, kind in enumerate(known)],
    )


def colour_and_shape(names: list[str], by_strategy: bool, title: str) -> "tuple[alt.Color, alt.Shape]":
    """Colour and shape of series, with a legend if there are several."""
    import altair as alt

    colours, shapes = series_style(names, by_strategy)
    legend = alt.Legend(symbolOpacity=1) if len(names) > 1 else None
    return (
        alt.Color("series:N", title=title, scale=alt.Scale(domain=names, range=colours), legend=legend),
        alt.Shape("series:N", title=title, scale=alt.Scale(domain=names, range=shapes), legend=legend),
    )


def ramp(number: int) -> list[str]:
    """Colours from few workers to many, six distinct ones at most, readable on white and on dark."""
    return [RAMP[round(place * (len(RAMP) - 1) / max(1, number - 1))] for place in range(number)]


def config(dark: bool = False) -> dict[str, Any]:
    """Vega-Lite configuration that all figures share."""
    ink, soft, faint = ("#E6EAEE", "#A9B2BB", "#353C44") if dark else ("#1B1F24", "#57606A", "#E4E7EA")
    return {
        "background": "transparent" if dark else "#FFFFFF",
        "font": FONT,
        "padding": {"left": 14, "right": 26, "top": 6, "bottom": 6},  # substitute fonts are wider
        "view": {"stroke": None},
        "title": {"color": ink, "fontSize": 16, "fontWeight": 600, "anchor": "start", "offset": 12},
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
            "layout": {"top": {"anchor": "start", "direction": "vertical", "margin": 6}},
        },
        "header": {"labelColor": ink, "labelFontSize": 14, "labelFontWeight": 600, "title": None},
        # These apply only to marks without their own colour: reference lines and their labels.
        "line": {"color": soft},
        "rule": {"color": soft},
        "text": {"color": soft, "fontSize": 12},
    }
