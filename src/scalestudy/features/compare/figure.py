"""The forest plot of a comparison: the ratio of every row with its interval, against none."""

from typing import Any

from scalestudy.features.compare.comparison import Comparison
from scalestudy.features.compare.rows import Compared
from scalestudy.report import series
from scalestudy.report.figure import WIDTH, Figure, data, figure
from scalestudy.report.style import COLOURS, SHAPES

TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Ratios that are written on the axis, where it reaches so far."""
FAR_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FAR = 3
"""From this ratio between the axis's ends on, the former would lie on each other."""
ROW = 24
"""Pixels of a row."""
LETTER = 8
"""Pixels that a letter of a row's name takes in the widest usual font (DejaVu Sans)."""


def ratio_figure(comparison: Comparison) -> Figure | None:
    """Ratios of throughput, or of training time where no throughput is known; None without any."""
    import altair as alt

    rows = [row for row in comparison.rows if row.quantity == "rate" and row.change.value is not None]
    title, better = "Throughput", "further right is faster"
    if not rows:
        rows = [row for row in comparison.rows if row.quantity == "training_seconds" and row.change.value]
        title, better = "Training time", "further left is faster"
    if not rows:
        return None
    names = [side.name for side in comparison.sides]
    others = list(dict.fromkeys(names[row.other] for row in rows))
    records = [_record(row, names) for row in rows]
    order = list(dict.fromkeys(row_name(row) for row in rows))
    scale = alt.Scale(type="log", nice=False, padding=12)
    x = alt.X(
        "value:Q",
        title=f"{title} over that of {names[0]}",
        scale=scale,
        axis=alt.Axis(format="~g", grid=True, values=_ticks(records), labelOverlap=True),
    )
    y = alt.Y(
        "row:N",
        title=None,
        sort=order,
        axis=alt.Axis(labelLimit=320, minExtent=LETTER * max(map(len, order))),
    )
    colour = alt.Color(
        "other:N", title=None, scale=alt.Scale(domain=others, range=_repeated(COLOURS, len(others)))
    )
    shape = alt.Shape(
        "other:N", title=None, scale=alt.Scale(domain=others, range=_repeated(SHAPES, len(others)))
    )
    drawn = alt.Chart(data(records)).encode(x, y, colour)
    if len(others) > 1:
        drawn = drawn.encode(yOffset=alt.YOffset("other:N", sort=others))
    one = alt.Chart(data([{"value": 1.0}])).mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(x="value:Q")
    fill = alt.condition("datum.real", colour, alt.value("transparent"))
    tips = [
        alt.Tooltip("row:N", title="Row"),
        alt.Tooltip("other:N", title="Of"),
        alt.Tooltip("text:N", title="Ratio"),
        alt.Tooltip("told:N", title="Is"),
    ]
    chart = alt.layer(
        one,
        drawn.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        drawn.mark_point(size=80, strokeWidth=2).encode(shape=shape, fill=fill, tooltip=tips),
    ).properties(width=WIDTH, height=max(3, len(order)) * ROW * max(1, len(others)))
    return figure(
        "ratios",
        f"{title} against {names[0]}",
        chart,
        f"The dashed line is no difference; {better}. Bars are 95 % intervals of each ratio on its own."
        " Filled points are real differences once they are corrected for the number of comparisons.",
    )


def row_name(row: Compared) -> str:
    """`horovod × 8`, with the other swept values where there are any."""
    return series.bar(row.key)


def _record(row: Compared, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"row": row_name(row), "other": names[row.other], "value": row.change.value}
    found |= {
        "real": row.real,
        "told": "real" if row.real else "not shown",
        "text": f"{row.change.value:.3g}",
    }
    if row.change.low is not None and row.change.high is not None:
        found |= {"low": row.change.low, "high": row.change.high}
        found["text"] = f"{row.change.value:.3g} (95 %: {row.change.low:.3g} to {row.change.high:.3g})"
    return found


def _ticks(records: list[dict[str, Any]]) -> list[float]:
    ends = [each[name] for each in records for name in ("value", "low", "high") if name in each]
    ends.append(1.0)
    return list(FAR_TICKS if max(ends) / min(ends) > FAR else TICKS)


def _repeated(values: tuple[str, ...], number: int) -> list[str]:
    return [values[index % len(values)] for index in range(number)]
