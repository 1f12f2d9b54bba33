"""Draw the README's figure, the published U-Net's training time and IoU: `python docs/pictures/make.py`."""

from pathlib import Path

import altair as alt

from scalestudy.features.imported.published import NAME, published_findings
from scalestudy.report.figure import Figure, Picture, colour_and_shape, data, figure
from scalestudy.report.figure_data import workers_axis

FILE = Path(__file__).with_name(f"{NAME}.svg")
STRATEGIES = {"native": "TensorFlow", "horovod": "Horovod"}


def time_and_quality() -> Figure:
    """Training time and IoU against the number of GPUs, in two panels with a common legend."""
    records = [
        {
            "series": STRATEGIES[row.strategy],
            "workers": row.workers,
            "minutes": round((row.training_seconds.value or 0.0) / 60, 1),
            "iou": row.quality.value,
        }
        for row in published_findings().rows
    ]
    colour, shape = colour_and_shape(list(STRATEGIES.values()), False, "")
    x = workers_axis([record["workers"] for record in records]).title("GPUs (V100)")
    panels = []
    for field, title, top in (
        ("minutes", "Training time (minutes)", 140),
        ("iou", "IoU after training", 1),
    ):
        y = alt.Y(
            f"{field}:Q",
            title=title,
            scale=alt.Scale(domain=[0, top]),
            axis=alt.Axis(tickCount=6),
        )
        chart = alt.Chart(data(records)).encode(x, y, colour)
        panels.append(
            alt.layer(
                chart.mark_line(), chart.mark_point(filled=True, size=70).encode(shape)
            )
        )
    both = alt.hconcat(*(panel.properties(width=320, height=230) for panel in panels))
    return figure(
        NAME, "A published U-Net on 1 to 14 GPUs: faster, and worse", both, ""
    )


if __name__ == "__main__":
    FILE.write_text(Picture(time_and_quality()).svg)
