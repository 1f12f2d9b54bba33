"""Figures of the loss: against epochs and against training time."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from scalestudy.analysis.findings import Findings
from scalestudy.report import series
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure
from scalestudy.report.style import COLOURS, ramp

if TYPE_CHECKING:
    import altair as alt


def loss_by_epoch(findings: Findings) -> Figure | None:
    """Loss against epochs; None without epochs."""
    return _loss(
        findings,
        "loss-by-epoch",
        "Loss against epochs",
        field="epoch",
        axis=lambda unit: "Epoch",
        caption="Mean over seeds. Equal curves mean that more workers learn as much from an epoch; curves"
        " that lie higher learn less from it, since they take fewer and larger steps.",
    )


def loss_by_time(findings: Findings) -> Figure | None:
    """Loss against training time; None without epochs."""
    return _loss(
        findings,
        "loss-by-time",
        "Loss against training time",
        field="time",
        axis=lambda unit: f"Training time ({unit})",
        caption="The same losses over training time: the curve furthest to the left reaches a given loss"
        " first. Evaluation, start-up and compilation are not in this time.",
    )


def _loss(
    findings: Findings, name: str, title: str, *, field: str, axis: Callable[[str], str], caption: str
) -> Figure | None:
    import altair as alt

    records, unit = series.losses(findings)
    records = [record for record in records if record[field] is not None]
    if not records:
        return None
    counts = sorted({record["workers"] for record in records})
    panels = list(dict.fromkeys(record["panel"] for record in records))
    values = [record["loss"] for record in records]
    steep = min(values) > 0 and max(values) / min(values) > 30
    picked = alt.selection_point(name="picked", fields=["workers"], bind="legend")
    # Few counts get colours that are far apart; many get a ramp, where the order is what is read.
    colours = alt.Scale(range=list(COLOURS[: len(counts)]) if len(counts) < 5 else ramp(len(counts)))
    dashed = alt.Scale(domain=["validation", "training"], range=[[1, 0], [3, 3]])
    chart = (
        alt.Chart(data(records))
        .mark_line(strokeWidth=2, point=len({record["epoch"] for record in records}) == 1)
        .encode(
            alt.X(
                f"{field}:Q",
                title=axis(unit),
                axis=_epochs(records) if field == "epoch" else alt.Axis(tickCount=5),
            ),
            alt.Y(
                "loss:Q",
                title="Loss",
                scale=alt.Scale(type="log") if steep else alt.Scale(zero=False),
                axis=alt.Axis(tickCount=5),
            ),
            alt.Color("workers:O", title="Workers", scale=colours),
            alt.StrokeDash("set:N", title="Loss on", scale=dashed),
            order="epoch:Q",
            opacity=alt.when(picked).then(alt.value(1.0)).otherwise(alt.value(0.1)),
            tooltip=[
                alt.Tooltip("panel:N", title="Strategy"),
                alt.Tooltip("workers:O", title="Workers"),
                alt.Tooltip("set:N", title="Loss on"),
                alt.Tooltip("epoch:Q", title="Epoch"),
                alt.Tooltip("time:Q", title=f"Training time ({unit})"),
                alt.Tooltip("loss:Q", title="Loss", format=".4g"),
            ],
        )
        .add_params(picked)
    )
    if len(panels) == 1:
        return figure(name, title, chart.properties(width=WIDTH, height=HEIGHT), caption, wide=True)
    faceted = chart.properties(width=WIDTH // 2 - 20, height=230).facet(
        facet=alt.Facet("panel:N", title=None, sort=panels), columns=2
    )
    return figure(name, title, faceted, caption, wide=True)


def _epochs(records: series.Records) -> "alt.Axis":
    import altair as alt

    count = min(6, max(record["epoch"] for record in records))
    return alt.Axis(format="d", tickMinStep=1, tickCount=count, labelOverlap=True)
