"""Colours, shapes and type of the figures, on white and on dark ground.

The colours are those of Okabe and Ito, "Color universal design" (2008), which people with any
colour vision tell apart; a strategy keeps its colour and its shape in every figure and every report.
"""

from typing import Any

from scalestudy.study.strategies import REGISTRY, position, traits

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6E7781", "#B8A800")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-left")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 2, 2, 2), (10, 4), (4, 1, 1, 1, 1, 1))
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"


def series_style(strategies: list[str], series: list[str], by_strategy: bool) -> tuple[list[str], list[str]]:
    """Colours and shapes of a figure's series: of their strategies, or simply one after another."""
    if by_strategy:
        known = [traits(name) if name in REGISTRY else None for name in strategies]
        return (
            [(each and each.colour) or COLOURS[i % len(COLOURS)] for i, each in enumerate(known)],
            [(each and each.shape) or SHAPES[i % len(SHAPES)] for i, each in enumerate(known)],
        )
    return (
        [COLOURS[index % len(COLOURS)] for index in range(len(series))],
        [SHAPES[index % len(SHAPES)] for index in range(len(series))],
    )


def series_dashes(names: list[str], by_strategy: bool) -> list[tuple[int, ...]]:
    """Dashes of a figure's series: a strategy's own, or one after another; a series alone has none."""
    if len(names) == 1:
        return [DASHES[0]]
    # The first strategy is of one worker alone, and draws no line.
    places = [position(name) - 1 if by_strategy else index for index, name in enumerate(names)]
    return [DASHES[place % len(DASHES)] for place in places]


def ramp(number: int) -> list[str]:
    """Colours from few workers to many: from violet over green to orange, readable on white and on dark."""
    stops = [
        (0x6A, 0x5A, 0xCD),
        (0x00, 0x72, 0xB2),
        (0x00, 0x9E, 0x73),
        (0xE6, 0x9F, 0x00),
        (0xD5, 0x5E, 0x00),
    ]
    found = []
    for index in range(number):
        place = index / (number - 1) * (len(stops) - 1)
        left = min(int(place), len(stops) - 2)
        share = place - left
        mixed = (round(a + (b - a) * share) for a, b in zip(stops[left], stops[left + 1], strict=True))
        found.append("#{:02X}{:02X}{:02X}".format(*mixed))
    return found


def config(dark: bool = False) -> dict[str, Any]:
    """Vega-Lite configuration shared by all figures."""
    ink, soft, faint = ("#E6EAEE", "#A9B2BB", "#353C44") if dark else ("#1B1F24", "#57606A", "#E4E7EA")
    return {
        "background": "transparent" if dark else "#FFFFFF",
        "font": FONT,
        "padding": 6,
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
        # Only marks without a colour of their own take these: guide lines and their labels.
        "line": {"color": soft},
        "rule": {"color": soft},
        "text": {"color": soft, "fontSize": 12},
    }
