"""The figure of a diagnosis: from one worker's speed down to E(n), a bar for each part that is lost."""

from typing import Any

from scalestudy.features.diagnose.records import Diagnosis
from scalestudy.report.figure import WIDTH, Figure, data, figure
from scalestudy.report.style import COLOURS

TITLES = {
    "input": "Input", "exchange": "Exchange", "imbalance": "Imbalance", "contention": "Contention",
    "fixed": "Fixed cost", "rest": "Rest",
}  # fmt: skip
LOST, GAINED, LEFT = COLOURS[1], COLOURS[2], COLOURS[0]
KINDS = {"lost": LOST, "gained": GAINED, "efficiency": LEFT}


def steps(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """The bars from above: label, both ends, kind, text, and the ends of its interval; in percent."""
    bars: list[dict[str, Any]] = [_bar("Ideal", 0.0, 100.0, "efficiency", "100 %")]
    at = 100.0
    for part in diagnosis.parts:
        share = 100 * part.share.value
        text = f"{-share:+.1f} %".replace("-", "−") if abs(share) >= 0.05 else "0 %"
        kind = "lost" if share >= 0 else "gained"
        bar = _bar(TITLES[part.name], at - share, at, kind, text)
        if part.share.low is not None and part.share.high is not None:
            bar |= _interval(at - 100 * part.share.high, at - 100 * part.share.low, bar)
        bars.append(bar)
        at -= share
    found = diagnosis.efficiency
    last = _bar(f"E({diagnosis.workers})", 0.0, 100 * found.value, "efficiency", f"{100 * found.value:.1f} %")
    if found.low is not None and found.high is not None:
        last |= _interval(100 * found.low, 100 * found.high, last)
    return [*bars, last]


def waterfall(diagnosis: Diagnosis) -> Figure:
    """The bars as a figure."""
    import altair as alt

    records = steps(diagnosis)
    order = [record["label"] for record in records]
    used = [kind for kind in KINDS if any(record["kind"] == kind for record in records)]
    base = alt.Chart(data(records)).encode(
        alt.Y("label:N", title=None, sort=order, axis=alt.Axis(labelLimit=160, minExtent=92))
    )
    colour = alt.Color(
        "kind:N", title=None, scale=alt.Scale(domain=used, range=[KINDS[kind] for kind in used])
    )
    # What reaches further is cut at the edges: intervals of few rounds may.
    reach = [min(0.0, *(bar["start"] for bar in records)), max(bar["end"] for bar in records)]
    within = alt.Scale(domain=reach, nice=False, clamp=True)
    ends = alt.X("start:Q", title="Efficiency (%)", scale=within, axis=alt.Axis(grid=True, tickCount=6))
    layers = [
        base.mark_bar(height={"band": 0.7}).encode(
            ends, x2="end:Q", color=colour,
            tooltip=[alt.Tooltip("label:N", title="Part"), alt.Tooltip("text:N", title="Of a step")],
        ),
        base.mark_text(align="left", dx=5).encode(x="right:Q", text="text:N"),
    ]  # fmt: skip
    if any("low" in record for record in records):
        layers.insert(
            1,
            base.mark_rule(strokeWidth=2)
            .transform_filter("isValid(datum.low)")
            .encode(x="low:Q", x2="high:Q"),
        )
    chart = alt.layer(*layers).properties(width=WIDTH - 60, height=30 * len(records))
    spans = " Thin lines are 95 % intervals over rounds." if len(layers) == 3 else ""
    return figure(
        "diagnosis",
        "Where efficiency is lost",
        chart,
        "From a step without losses to the point's efficiency; each bar is the share of a step that one part "
        f"takes, and together they make up 1 − E({diagnosis.workers}).{spans}",
    )


def _interval(low: float, high: float, bar: dict[str, Any]) -> dict[str, Any]:
    """The ends of an interval; the bar's text stands to its right."""
    return {"low": low, "high": high, "right": max(high, bar["right"])}


def _bar(label: str, start: float, end: float, kind: str, text: str) -> dict[str, Any]:
    return {
        "label": label,
        "start": min(start, end),
        "end": max(start, end),
        "right": max(start, end),
        "kind": kind,
        "text": text,
    }
