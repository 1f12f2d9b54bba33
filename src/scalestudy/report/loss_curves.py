"""Figures of the loss against epochs and against time, which share one place."""

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Run, epoch_values
from scalestudy.report.figure import (
    COLOURS,
    HEIGHT,
    WIDTH,
    Figure,
    data,
    figure,
    ramp,
    tooltip,
)
from scalestudy.report.figure_data import (
    MOST_PANELS,
    Records,
    downsample,
    labels,
    rounded,
    series_name,
)
from scalestudy.report.number_format import time_unit

MOST_EPOCHS = 60
"""Largest number of epochs drawn in a line; more cannot be distinguished and would enlarge the page."""
LEAST_EPOCHS = 12
MOST_COUNTS = 6
MOST_RECORDS = 4000
"""Points of all lines together, which determine the size of the page; a line has at least `LEAST_EPOCHS`."""
STEEP = 30
"""Ratio of the largest to the smallest loss from which the axis is logarithmic."""
MOST_TICKS = 6
WAYS = {
    "epoch": (
        "epochs",
        "Epoch",
        "Equal curves mean that more workers learn as much from an epoch.",
    ),
    "time": (
        "training time",
        "Training time",
        "The curve furthest to the left reaches a loss first.",
    ),
}
"""Horizontal axes: the name in a title, the axis title, and how to read the figure."""


def losses(findings: Findings) -> list[Figure]:
    """The loss against each horizontal axis; none without epochs."""
    records, unit, few = loss_records(findings)
    if not records:
        return []
    curves = {(record["panel"], record["workers"]) for record in records}
    drawn = []
    for field, (_, _, reading) in WAYS.items():
        known = [record for record in records if record[field] is not None]
        if not known:
            continue
        caption = "Mean over seeds."
        if len(curves) > 1:
            caption += f" {reading}"
        drawn.append(_against(known, unit, field, caption + few))
    return drawn


def loss_records(findings: Findings) -> tuple[Records, str, str]:
    """Mean losses over the seeds by epoch, the unit of time, and a sentence on rows that are left out."""
    groups, named = findings.measures.groups, labels(findings)
    keys = [key for key, runs in groups.items() if any(run.epochs for run in runs)]
    shown = list(dict.fromkeys(map(series_name, keys)))[:MOST_PANELS]
    choice = findings.advice.choice
    counts = downsample(
        [key.workers for key in keys], MOST_COUNTS, {choice.workers} if choice else ()
    )
    rows = [key for key in keys if series_name(key) in shown and key.workers in counts]
    last = [
        run.epochs[-1].elapsed_training_seconds
        for key in rows
        for run in groups[key]
        if run.epochs
    ]
    ends = [seconds for seconds in last if seconds is not None]
    unit, length = time_unit(ends)
    most = max(LEAST_EPOCHS, min(MOST_EPOCHS, MOST_RECORDS // max(1, 2 * len(rows))))
    records: Records = []
    for key in rows:
        series = named.fields(key)["series"]
        fields = {"series": series, "panel": series_name(key), "workers": key.workers}
        records += [fields | record for record in _means(groups[key], most, length)]
    return (
        records,
        unit,
        f" Of {len(keys)} rows, {len(rows)} are drawn."
        if len(rows) < len(keys)
        else "",
    )


def _means(runs: Sequence[Run], most: int, length: float) -> Records:
    """Means over a row's runs at some of their epochs, for each loss with a finite value."""
    by_epoch: dict[int, Records] = {}
    for run in runs:
        for record in _epochs(run, length):
            by_epoch.setdefault(record["epoch"], []).append(record)
    every = sorted(by_epoch)
    step = max(1, -(-len(every) // most))
    made: Records = []
    for epoch in sorted({*every[::step], *every[-1:]}):
        records = by_epoch[epoch]
        time = _mean([record["time"] for record in records])
        for name in ("training", "validation"):
            known = [record[name] for record in records if record[name] is not None]
            if (loss := _mean(known)) is not None:
                made.append({"epoch": epoch, "set": name, "loss": loss, "time": time})
    return made


def _epochs(run: Run, length: float) -> Records:
    """Each epoch with the time up to its end, and its losses; None if not recorded."""
    epochs = run.epochs
    seconds = epoch_values(epochs, "elapsed_training_seconds")
    columns = {
        "epoch": epoch_values(epochs, "epoch"),
        "time": [None if value is None else value / length for value in seconds],
        "training": epoch_values(epochs, "loss"),
        "validation": epoch_values(epochs, "validation", "loss"),
    }
    return [
        dict(zip(columns, values, strict=True))
        for values in zip(*columns.values(), strict=True)
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean; None if a value is unknown or not finite, or if there are no values."""
    known = [value for value in values if value is not None and isfinite(value)]
    return (
        rounded(sum(known) / len(known))
        if known and len(known) == len(values)
        else None
    )


def _against(records: Records, unit: str, field: str, caption: str) -> Figure:
    import altair as alt

    counts = sorted({record["workers"] for record in records})
    panels = list(dict.fromkeys(record["panel"] for record in records))
    values = [record["loss"] for record in records]
    steep = min(values) > 0 and max(values) / min(values) > STEEP
    # A few numbers of workers get distinct colours; many get a ramp that shows their order.
    colours = list(COLOURS[: len(counts)]) if len(counts) < 5 else ramp(len(counts))
    titles = {name: axis for name, (_, axis, _) in WAYS.items()} | {
        "time": f"Training time ({unit})"
    }
    epochs = sorted({record["epoch"] for record in records})
    ticks = (
        {"values": epochs}
        if field == "epoch" and len(epochs) <= MOST_TICKS
        else {"tickCount": MOST_TICKS}
    )
    form = "d" if field == "epoch" else "~g"
    domain = ["validation", "training"]
    sets = alt.StrokeDash(
        "set:N",
        title="Loss on",
        scale=alt.Scale(domain=domain, range=[[1, 0], [3, 3]]),
        legend=alt.Legend(symbolType="stroke"),
    )
    lines = Counter(
        (record["panel"], record["workers"], record["set"]) for record in records
    )
    single = (
        min(lines.values()) == 1
    )  # a line of one value cannot be seen without its point
    base = (
        alt.Chart(data(records))
        .mark_line(strokeWidth=2, point=single)
        .encode(
            alt.X(
                f"{field}:Q",
                title=titles[field],
                axis=alt.Axis(format=form, labelOverlap=True, **ticks),
            ),
            alt.Y(
                "loss:Q",
                title="Loss",
                axis=alt.Axis(tickCount=5),
                scale=alt.Scale(type="log") if steep else alt.Scale(zero=False),
            ),
            alt.Color(
                "workers:O",
                title="Workers",
                scale=alt.Scale(domain=counts, range=colours),
                legend=alt.Legend() if len(counts) > 1 else None,
            ),
            sets,
            detail="panel:N",
            order="epoch:Q",
            tooltip=tooltip(
                panel="Strategy",
                workers="Workers",
                set="Loss on",
                **{name: f"{title}|," for name, title in titles.items()},
                loss="Loss|.4g",
            ),
        )
    )
    drawn: Any = base.properties(width=WIDTH, height=HEIGHT)
    if len(panels) > 1:
        drawn = base.properties(width=WIDTH // 2 - 20, height=230).facet(
            facet=alt.Facet("panel:N", title=None, sort=panels), columns=2
        )
    word = WAYS[field][0]
    title = f"Loss against {word}"
    return figure(
        f"loss-by-{field}",
        title,
        drawn,
        caption,
        wide=True,
        group="loss",
        choice=f"against {word}",
    )
