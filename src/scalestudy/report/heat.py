"""Heat maps of two swept keys: one cell a pair of values, one panel a strategy and worker count."""

from collections.abc import Sequence
from typing import Any, Final

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, describe, metric_label
from scalestudy.report import series
from scalestudy.report.columns import columns_of
from scalestudy.report.figure import Figure, data, figure
from scalestudy.report.series import Records
from scalestudy.report.thin import thinned

CELL = 54
MOST_PANELS = 12
SCHEME: Final = "cividis"
"""Of one hue in effect, and even in lightness, for every colour vision (Nuñez et al., PLOS ONE 13, 2018)."""
TEXT = 0.55
"""Share of the range from which cells are light, and their numbers dark."""


def heat_maps(findings: Findings) -> list[Figure]:
    """Throughput, quality, efficiency and training time of pairs of values; none without two swept keys."""
    axes = swept_axes(findings)
    if axes is None:
        return []
    metric = metric_label(findings.rows[0].metric)
    rows = findings.rows
    ways = [
        (f"heat-{column.name.replace('_', '-')}", column.title, column.unit, column.of)
        for column in columns_of(rows)
        if column.name in ("throughput", "training_seconds")
    ]
    ways[1:1] = [
        ("heat-quality", metric, "", lambda row: row.quality),
        ("heat-efficiency", "Efficiency", "", lambda row: row.efficiency),
    ]
    found = [
        _map(findings, axes, name, title, unit, series.measured(findings, of))
        for name, title, unit, of in ways
    ]
    return [each for each in found if each]


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


def _map(
    findings: Findings, axes: tuple[str, str], name: str, title: str, unit: str, records: Records
) -> Figure | None:
    import altair as alt

    keys = {(row.strategy, series.short(row.key), row.workers): row.key for row in findings.rows}
    cells = [
        _cell(keys[record["strategy"], record["variant"], record["workers"]], axes, record)
        for record in records
    ]
    counts = thinned([cell["workers"] for cell in cells], 4) if cells else []
    panels = list(dict.fromkeys(cell["panel"] for cell in cells if cell["workers"] in counts))
    drawn = [cell for cell in cells if cell["panel"] in panels[:MOST_PANELS]]
    if len(drawn) < 2:
        return None
    low, high = min(cell["value"] for cell in drawn), max(cell["value"] for cell in drawn)
    for cell in drawn:
        cell["light"] = high > low and (cell["value"] - low) / (high - low) > TEXT
    across, down = (_order(findings, axis) for axis in axes)
    label = f"{title} ({unit})" if unit else title
    base = alt.Chart().encode(
        alt.X(
            "across:N", title=axes[0].split(".")[-1], sort=across, axis=alt.Axis(labelAngle=0, labelLimit=90)
        ),
        alt.Y("down:N", title=axes[1].split(".")[-1], sort=down, axis=alt.Axis(grid=False)),
    )
    tiles = base.mark_rect().encode(
        alt.Color(
            "value:Q", title=label, scale=alt.Scale(scheme=SCHEME), legend=alt.Legend(gradientLength=160)
        ),
        tooltip=[
            alt.Tooltip("panel:N", title="Point"),
            alt.Tooltip("across:N", title=axes[0]),
            alt.Tooltip("down:N", title=axes[1]),
            alt.Tooltip("text:N", title=label),
        ],
    )
    ink = alt.when("datum.light").then(alt.value("#14181d")).otherwise(alt.value("#ffffff"))
    numbers = base.mark_text(fontSize=12).encode(text=alt.Text("value:Q", format=".3~g"), color=ink)
    size = {
        "width": max(150, CELL * len(across)),
        "height": max(34 * len(down), 8 * len(axes[1].split(".")[-1])),
    }
    chart = alt.layer(tiles, numbers, data=data(drawn)).properties(**size)
    faceted = chart.facet(facet=alt.Facet("panel:N", title=None, sort=panels), columns=2)
    few = f" Of {len({cell['panel'] for cell in cells})} panels, {len(panels[:MOST_PANELS])} are drawn."
    return figure(
        name,
        f"{title} by {axes[0].split('.')[-1]} and {axes[1].split('.')[-1]}",
        faceted,
        f"{label} of each pair of values, mean over seeds; a missing tile was not measured."
        + (few if len(drawn) < len(cells) else ""),
        wide=True,
        group="heat",
        choice=title,
    )


def _cell(key: Key, axes: tuple[str, str], record: dict[str, Any]) -> dict[str, Any]:
    rest = describe({name.split(".")[-1]: value for name, value in key.swept.items() if name not in axes})
    across, down = (str(key.swept.get(name, "")) for name in axes)
    return {
        "panel": series.bar(key, rest),
        "workers": key.workers,
        "across": across,
        "down": down,
        "value": record["value"],
        "text": record["text"],
    }


def _order(findings: Findings, axis: str) -> Sequence[str]:
    """Values of a swept key in the order of the table's rows, which is that of numbers."""
    keys = sorted({row.key for row in findings.rows}, key=lambda key: _place(key.swept.get(axis)))
    return list(dict.fromkeys(str(key.swept.get(axis, "")) for key in keys))


def _place(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value)
