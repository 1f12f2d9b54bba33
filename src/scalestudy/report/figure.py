"""What a figure is, before it is drawn."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 640, 360


@dataclass(frozen=True)
class Figure:
    """One figure: a file name without its ending, its texts and its Vega-Lite specification."""

    name: str
    title: str
    caption: str
    """How to read it."""
    spec: dict[str, Any]
    """Without colours of ground and ink: those come from `style.config`."""
    wide: bool = False
    """Whether it needs the whole width of a page."""
    group: str = ""
    """Figures of a group stand in one place: a page shows the one that is chosen, at first the first."""
    choice: str = ""
    """What is chosen by, in a few words: "by epochs"."""


def data(records: list[dict[str, Any]]) -> "alt.InlineData":
    """Records as the data of a chart."""
    import altair as alt

    source = alt.InlineData(values=records)
    # Altair copies a chart at each step, with every record: thousands take longer than all else of a page.
    object.__setattr__(source, "__deepcopy__", lambda _: source)
    return source


def tooltip(**titles: str) -> "list[alt.Tooltip]":
    """Fields of text and number with what they are called; a title may end in a format: "Share|.1%"."""
    import altair as alt

    made = []
    for field, words in titles.items():
        title, _, form = words.partition("|")
        made.append(alt.Tooltip(f"{field}:{'Q' if form else 'N'}", title=title, format=form or alt.Undefined))
    return made


def figure(
    name: str, title: str, chart: Any, caption: str, wide: bool = False, group: str = "", choice: str = ""
) -> Figure:
    """A figure of an Altair chart."""
    # To hold a chart against its schema takes longer than to draw it: tests do so.
    spec = chart.properties(title=title).to_dict(validate=False)
    # The library's own theme and the address of its schema do not belong in a page of ours.
    for key in ("$schema", "config", "usermeta"):
        spec.pop(key, None)
    return Figure(name, title, caption, spec, wide, group, choice)
