"""A figure as data, before it is drawn."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 640, 360


@dataclass(frozen=True)
class Figure:
    """One figure: a file name without extension, its texts, and its Vega-Lite specification."""

    name: str
    title: str
    caption: str
    """How to read it."""
    spec: dict[str, Any]
    """Without colours for background and text, which come from `style.config`."""
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
        made.append(alt.Tooltip(f"{field}:{'Q' if form else 'N'}", title=title, format=form or alt.Undefined))
    return made


def figure(
    name: str, title: str, chart: Any, caption: str, wide: bool = False, group: str = "", choice: str = ""
) -> Figure:
    """Make a figure from an Altair chart."""
    # Validating a chart takes longer than drawing it, so only tests do it.
    spec = chart.properties(title=title).to_dict(validate=False)
    # The page has its own theme and needs no schema address.
    for key in ("$schema", "config", "usermeta"):
        spec.pop(key, None)
    return Figure(name, title, caption, spec, wide, group, choice)
