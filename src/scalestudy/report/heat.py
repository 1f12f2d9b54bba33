"""Heat maps of two swept keys: one cell a pair of values, one panel a strategy and worker count."""

from typing import Final

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import describe, metric_label, value_order
from scalestudy.report.figure import Figure, data, figure, tooltip
from scalestudy.report.series import (
    MOST_PANELS,
    Quantity,
    Records,
    bar,
    downsampled,
    measured,
    quantities,
    short,
)

CELL = 54
SCHEME: Final = "cividis"
"""Of one hue in effect, and even in lightness, for every colour vision (Nuñez et al., PLOS ONE 13, 2018)."""
TEXT = 0.55
"""Share of the range from which cells are light, and their numbers dark."""


def heat_maps(findings: Findings) -> list[Figure]:
    """Throughput, quality, efficiency and training time of pairs of values; none without two swept keys."""
    axes = swept_axes(findings)
    if axes is None:
        return []
    ways = [way for way in quantities(findings.rows) if way.name in ("throughput", "training_seconds")]
    ways[1:1] = [
        Quantity("quality", metric_label(findings.rows[0].metric), "", lambda row: row.quality),
        Quantity("efficiency", "Efficiency", "", lambda row: row.efficiency),
    ]
    return [made for way in ways if (made := _map(findings, axes, way))]


def swept_axes(findings: Findings) -> tuple[str, str] | None:
    """The two swept keys with the most values, the one with more first; None with fewer than two keys."""
    values: dict[str, set[str]] = {}
    for row in findings.rows:
        for name, value in row.key.swept.items():
            values.setdefault(name, set()).add(str(value))
    names = sorted(
        (name for name in values if len(values[name]) > 1), key=lambda name: (-len(values[name]), name)
    )
    return (names[0], names[1]) if len(names) > 1 else None


def _map(findings: Findings, axes: tuple[str, str], way: Quantity) -> Figure | None:
    import altair as alt

    cells = _cells(findings, axes, way)
    counts = downsampled([cell["workers"] for cell in cells], 4) if cells else []
    every = list(dict.fromkeys(cell["panel"] for cell in cells))
    panels = list(dict.fromkeys(cell["panel"] for cell in cells if cell["workers"] in counts))[:MOST_PANELS]
    drawn = [cell for cell in cells if cell["panel"] in panels]
    if len(drawn) < 2:
        return None
    low, high = min(cell["value"] for cell in drawn), max(cell["value"] for cell in drawn)
    for cell in drawn:
        cell["light"] = high > low and (cell["value"] - low) / (high - low) > TEXT
    across, down = (_values(findings, axis) for axis in axes)
    titles = [axis.split(".")[-1] for axis in axes]
    base = alt.Chart().encode(
        alt.X("across:N", title=titles[0], sort=across, axis=alt.Axis(labelAngle=0, labelLimit=90)),
        alt.Y("down:N", title=titles[1], sort=down, axis=alt.Axis(grid=False)),
    )
    colour = alt.Color(
        "value:Q", title=way.label, scale=alt.Scale(scheme=SCHEME), legend=alt.Legend(gradientLength=160)
    )
    tips = tooltip(panel="Point", across=axes[0], down=axes[1], text=way.label)
    tiles = base.mark_rect().encode(colour, tooltip=tips)
    ink = alt.when("datum.light").then(alt.value("#14181d")).otherwise(alt.value("#ffffff"))
    numbers = base.mark_text(fontSize=12).encode(text=alt.Text("value:Q", format=".3~g"), color=ink)
    chart = alt.layer(tiles, numbers, data=data(drawn)).properties(
        width=max(150, CELL * len(across)), height=max(34 * len(down), 8 * len(titles[1]))
    )
    caption = f"{way.label} of each pair of values, mean over seeds; a missing tile was not measured."
    if len(panels) < len(every):
        caption += f" Of {len(every)} panels, {len(panels)} are drawn."
    faceted = chart.facet(facet=alt.Facet("panel:N", title=None, sort=panels), columns=2)
    name, title = f"heat-{way.name.replace('_', '-')}", f"{way.title} by {titles[0]} and {titles[1]}"
    return figure(name, title, faceted, caption, wide=True, group="heat", choice=way.title)


def _cells(findings: Findings, axes: tuple[str, str], way: Quantity) -> Records:
    keys = {(row.strategy, short(row.key), row.workers): row.key for row in findings.rows}
    cells = []
    for record in measured(findings, way.of):
        key = keys[record["strategy"], record["variant"], record["workers"]]
        rest = describe({name.split(".")[-1]: value for name, value in key.swept.items() if name not in axes})
        across, down = (str(key.swept.get(name, "")) for name in axes)
        cells.append(record | {"panel": bar(key, rest), "across": across, "down": down})
    return cells


def _values(findings: Findings, axis: str) -> list[str]:
    """Values of a swept key, numbers in their order."""
    values = [row.key.swept.get(axis, "") for row in findings.rows]
    return list(dict.fromkeys(str(value) for value in sorted(values, key=value_order)))
