"""The figure of where the time goes."""

from scalestudy.analysis.findings import Findings
from scalestudy.report import series
from scalestudy.report.figure import WIDTH, Figure, data, figure
from scalestudy.report.style import COLOURS


def phases(findings: Findings) -> list[Figure]:
    """Wall time by phase, one bar a row of the table; of many rows some, and none without results."""
    import altair as alt

    records, names, unit = series.phases(findings)
    if not records:
        return []
    bars = list(dict.fromkeys(record["bar"] for record in records))
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(names))]
    picked = alt.selection_point(name="picked", fields=["phase"], bind="legend")
    chart = (
        alt.Chart(data(records))
        .mark_bar(height={"band": 0.78})
        .encode(
            alt.X("time:Q", title=f"Wall time ({unit})", axis=alt.Axis(grid=True, tickCount=6)),
            alt.Y("bar:N", title=None, sort=bars, axis=alt.Axis(labelLimit=260)),
            alt.Color("phase:N", title="Phase", scale=alt.Scale(domain=names, range=colours)),
            order="order:Q",
            opacity=alt.when(picked).then(alt.value(1.0)).otherwise(alt.value(0.15)),
            tooltip=[
                alt.Tooltip("bar:N", title="Point"),
                alt.Tooltip("phase:N", title="Phase"),
                alt.Tooltip("time:Q", title=f"Time ({unit})", format=",.3~f"),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
            ],
        )
        .add_params(picked)
        .properties(width=WIDTH, height=len(bars) * (26 if len(bars) <= 24 else 18))
    )
    few = (
        f" Of {len(findings.phases)} rows, {len(bars)} are drawn." if len(bars) < len(findings.phases) else ""
    )
    drawn = figure(
        "phases",
        "Where the time goes",
        chart,
        "Wall time of a run by phase, from the start of its processes to its result, mean over seeds."
        f" What is not training shrinks little with more workers.{few}",
    )
    return [drawn]
