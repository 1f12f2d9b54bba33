"""The figure that shows where the time goes."""

from collections.abc import Iterable

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.report.figure import WIDTH, Figure, data, figure, tooltip
from scalestudy.report.format import time_unit
from scalestudy.report.series import Records, bar, downsampled, rounded
from scalestudy.report.style import COLOURS

MOST_ROWS = 30
MOST_PHASES = 7
"""Largest number of phases with their own colour."""


def phases(findings: Findings) -> list[Figure]:
    """Wall time by phase, one bar for each row, or for some rows if there are many."""
    import altair as alt

    records, names, unit = phase_records(findings)
    if not records:
        return []
    bars = list(dict.fromkeys(record["bar"] for record in records))
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    picked = alt.selection_point(name="picked", fields=["phase"], bind="legend")
    chart = (
        alt.Chart(data(records))
        .mark_bar(height={"band": 0.78})
        .encode(
            alt.X("time:Q", title=f"Wall time ({unit})", axis=alt.Axis(grid=True, tickCount=6)),
            alt.Y("bar:N", title=None, sort=bars, axis=alt.Axis(labelLimit=260)),
            alt.Color("phase:N", title="Phase", scale=colours),
            order="order:Q",
            opacity=alt.when(picked).then(alt.value(1.0)).otherwise(alt.value(0.15)),
            tooltip=tooltip(bar="Point", phase="Phase", time=f"Time ({unit})|,.3~f", share="Share|.1%"),
        )
        .add_params(picked)
        .properties(width=WIDTH, height=len(bars) * (26 if len(bars) <= 24 else 18))
    )
    rows = len(findings.phases)
    caption = (
        "Wall time of a run by phase, from the start of its processes to its result, mean over seeds."
        " Phases other than training shrink little with more workers."
        + (f" Of {rows} rows, {len(bars)} are drawn." if len(bars) < rows else "")
    )
    return [figure("phases", "Where the time goes", chart, caption)]


def phase_records(findings: Findings) -> tuple[Records, list[str], str]:
    """Mean seconds by phase, the phases in order, and the unit of time."""
    shown = _largest(findings.phases.values())
    unit, length = time_unit([sum(seconds.values()) for seconds in findings.phases.values()])
    records: Records = []
    for key in _some_rows(findings):
        by_phase = findings.phases[key]
        total = sum(by_phase.values()) or 1.0
        for order, (name, members) in enumerate(shown.items()):
            seconds = sum(by_phase.get(member, 0.0) for member in members)
            if seconds > 0:
                records.append(
                    {"bar": bar(key), "phase": name, "order": order, "time": rounded(seconds / length)}
                    | {"share": rounded(seconds / total)}
                )
    return records, list(shown), unit


def _largest(rows: Iterable[dict[str, float]]) -> dict[str, list[str]]:
    """The phases to show, each with the recorded phases in it: the smallest are merged if there are many."""
    totals: dict[str, float] = {}
    for seconds in rows:
        for name, value in seconds.items():
            totals[name] = totals.get(name, 0.0) + value
    order = [name for name in totals if name != "other"]
    kept = sorted(order, key=lambda name: -totals[name])
    if len(totals) > MOST_PHASES:
        kept = kept[: MOST_PHASES - 1]
    rest = [name for name in totals if name not in kept]
    return {name: [name] for name in order if name in kept} | ({"other": rest} if rest else {})


def _some_rows(findings: Findings) -> list[Key]:
    """All rows, or those of some numbers of workers if there are many."""
    keys = list(findings.phases)
    if len(keys) <= MOST_ROWS:
        return keys
    series = len({(key.strategy, key.variant) for key in keys})
    advised = {findings.advice.choice.workers} if findings.advice.choice else set()
    counts = downsampled([key.workers for key in keys], max(2, MOST_ROWS // series), advised)
    return [key for key in keys if key.workers in counts][:MOST_ROWS]
