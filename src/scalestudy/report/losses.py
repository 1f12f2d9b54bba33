"""Figures of the loss: against epochs, updates, samples and time, each in the place of the others."""

from typing import TYPE_CHECKING, Any

from scalestudy.analysis.findings import Findings
from scalestudy.report import curves
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure
from scalestudy.report.series import Records
from scalestudy.report.style import COLOURS, ramp

if TYPE_CHECKING:
    import altair as alt

STEEP = 30
"""Ratio of the largest to the smallest loss from which a logarithmic axis shows more."""
MOST_TICKS = 6
WAYS = {
    "epoch": "Mean over seeds. Equal curves mean that more workers learn as much from an epoch; curves that"
    " lie higher learn less from it{larger}.",
    "updates": "Mean over seeds, against changes of the weights{fewer}.",
    "samples": "Mean over seeds, against the samples that all workers have processed: the work that was paid"
    " for.",
    "time": "Mean over seeds, against training time: the curve furthest to the left reaches a given loss"
    " first.",
}
"""What a loss is drawn against, and how to read it."""
GROWING = {
    "larger": ", since they take fewer and larger steps",
    "fewer": ": more workers make fewer of them from an epoch, each from a larger batch. Curves on each other"
    " mean that larger batches make none better",
}
"""What is said besides where the batch of an update grows with the workers."""


def losses(findings: Findings) -> list[Figure]:
    """The loss in four ways; none without epochs."""
    records, unit, few = curves.losses(findings)
    found = []
    ours = {"time": " Evaluation, start-up and compilation are not in this time."}
    said = {} if any(run.foreign for run in findings.runs) else ours
    grows = len({row.global_batch for row in findings.rows}) > 1
    besides = GROWING if grows else dict.fromkeys(GROWING, "")
    for field, way in WAYS.items():
        caption = way.format(**besides)
        known = [record for record in records if record[field] is not None]
        if known:
            found.append(_against(known, unit, field, f"{caption}{said.get(field, '')}{few}"))
    return found


def _against(records: Records, unit: str, field: str, caption: str) -> Figure:
    import altair as alt

    counts = sorted({record["workers"] for record in records})
    panels = list(dict.fromkeys(record["panel"] for record in records))
    values = [record["loss"] for record in records]
    steep = min(values) > 0 and max(values) / min(values) > STEEP
    picked = alt.selection_point(name="picked", fields=["workers"], bind="legend")
    several = len(counts) > 1
    faded = alt.when(picked).then(alt.value(1.0)).otherwise(alt.value(0.1)) if several else alt.value(1.0)
    # Few counts get colours that are far apart; many get a ramp, where the order is what is read.
    colours = alt.Scale(
        domain=counts, range=list(COLOURS[: len(counts)]) if len(counts) < 5 else ramp(len(counts))
    )
    dashed = alt.Scale(domain=["validation", "training"], range=[[1, 0], [3, 3]])
    titles = {"epoch": "Epoch", "updates": "Updates", "samples": "Samples", "time": f"Training time ({unit})"}
    chart = (
        alt.Chart(data(records))
        .mark_line(strokeWidth=2, point=len({record["epoch"] for record in records}) == 1)
        .encode(
            alt.X(f"{field}:Q", title=titles[field], axis=_axis(records, field)),
            alt.Y(
                "loss:Q",
                title="Loss",
                scale=alt.Scale(type="log") if steep else alt.Scale(zero=False),
                axis=alt.Axis(tickCount=5),
            ),
            alt.Color("workers:O", title="Workers", scale=colours, legend=alt.Legend() if several else None),
            alt.StrokeDash("set:N", title="Loss on", scale=dashed),
            detail="panel:N",
            order="epoch:Q",
            opacity=faded,
            tooltip=[
                alt.Tooltip("panel:N", title="Strategy"),
                alt.Tooltip("workers:O", title="Workers"),
                alt.Tooltip("set:N", title="Loss on"),
                *(alt.Tooltip(f"{name}:Q", title=title, format=",") for name, title in titles.items()),
                alt.Tooltip("loss:Q", title="Loss", format=".4g"),
            ],
        )
    )
    if several:
        chart = chart.add_params(picked)
    if len(panels) == 1:
        return _figure(field, chart.properties(width=WIDTH, height=HEIGHT), caption)
    faceted = chart.properties(width=WIDTH // 2 - 20, height=230).facet(
        facet=alt.Facet("panel:N", title=None, sort=panels), columns=2
    )
    return _figure(field, faceted, caption)


def _figure(field: str, chart: Any, caption: str) -> Figure:
    word = {"epoch": "epochs", "time": "training time"}.get(field, field)
    title = f"Loss against {word}"
    return figure(
        f"loss-by-{field}", title, chart, caption, wide=True, group="loss", choice=f"against {word}"
    )


def _axis(records: Records, field: str) -> "alt.Axis":
    import altair as alt

    if field != "epoch":
        return alt.Axis(
            tickCount=5, format="~s" if field in ("updates", "samples") else "~g", labelOverlap=True
        )
    epochs = sorted({record["epoch"] for record in records})
    if len(epochs) <= MOST_TICKS:
        return alt.Axis(format="d", values=epochs, labelOverlap=True)
    return alt.Axis(format="d", tickMinStep=1, tickCount=MOST_TICKS, labelOverlap=True)
