"""Figures of the loss against epochs and against time, which share one place."""

from collections import Counter
from collections.abc import Sequence
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, Run, epoch_values
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
    column,
    downsample,
    labels,
    rounded,
    series_name,
)
from scalestudy.report.number_format import time_unit

if TYPE_CHECKING:
    import altair as alt

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
    curves = set()
    for record in records:
        curves.add((record["panel"], record["workers"]))
    drawn = []
    for field, (_, _, reading) in WAYS.items():
        known = [record for record in records if record[field] is not None]
        # Logs of other programs may lack the times of their epochs.
        if not known:
            continue
        caption = "Mean over seeds."
        if len(curves) > 1:
            caption += f" {reading}"
        drawn.append(_against(known, unit, field, caption + few))
    return drawn


def loss_records(findings: Findings) -> tuple[Records, str, str]:
    """Mean losses over the seeds by epoch, the unit of time, and a sentence on rows that are left out."""
    groups = findings.measures.groups
    named = labels(findings)
    keys = []
    for key, runs in groups.items():
        if any(run.epochs for run in runs):
            keys.append(key)
    rows = _shown_rows(keys, findings)
    ends = []
    for key in rows:
        for run in groups[key]:
            if not run.epochs:
                continue
            last = run.epochs[-1].elapsed_training_seconds
            if last is not None:
                ends.append(last)
    unit, length = time_unit(ends)
    # Two losses for each row.
    lines = max(1, 2 * len(rows))
    most = max(LEAST_EPOCHS, min(MOST_EPOCHS, MOST_RECORDS // lines))
    records: Records = []
    for key in rows:
        series = named.fields(key)["series"]
        fields = {"series": series, "panel": series_name(key), "workers": key.workers}
        for record in _means(groups[key], most, length):
            records.append(fields | record)
    few = ""
    if len(rows) < len(keys):
        few = f" Of {len(keys)} rows, {len(rows)} are drawn."
    return records, unit, few


def _shown_rows(keys: Sequence[Key], findings: Findings) -> list[Key]:
    """Rows of the first series, on some of the numbers of workers, with the advised one."""
    names = dict.fromkeys(map(series_name, keys))
    series = list(names)[:MOST_PANELS]
    choice = findings.advice.choice
    keep = {choice.workers} if choice else ()
    every = [key.workers for key in keys]
    counts = downsample(every, MOST_COUNTS, keep)
    shown = []
    for key in keys:
        if series_name(key) in series and key.workers in counts:
            shown.append(key)
    return shown


def _means(runs: Sequence[Run], most: int, length: float) -> Records:
    """Means over a row's runs at some of their epochs, for each loss with a finite value."""
    by_epoch: dict[int, Records] = {}
    for run in runs:
        for record in _epochs(run, length):
            by_epoch.setdefault(record["epoch"], []).append(record)
    every = sorted(by_epoch)
    # Every nth epoch, so that no loss is a mean over epochs, which would smooth the curve.
    step = max(1, ceil(len(every) / most))
    made: Records = []
    # The last epoch always: its loss is that of the model that was kept.
    for epoch in sorted({*every[::step], *every[-1:]}):
        records = by_epoch[epoch]
        time = _mean(column(records, "time"))
        for name in ("training", "validation"):
            known = []
            for record in records:
                if record[name] is not None:
                    known.append(record[name])
            if (loss := _mean(known)) is not None:
                made.append({"epoch": epoch, "set": name, "loss": loss, "time": time})
    return made


def _epochs(run: Run, length: float) -> Records:
    """Each epoch with the time up to its end, and its losses; None if not recorded."""
    epochs = run.epochs
    numbers = epoch_values(epochs, "epoch")
    seconds = epoch_values(epochs, "elapsed_training_seconds")
    training = epoch_values(epochs, "loss")
    validation = epoch_values(epochs, "validation", "loss")
    records: Records = []
    for place, number in enumerate(numbers):
        time = seconds[place]
        records.append(
            {
                "epoch": number,
                "time": None if time is None else time / length,
                "training": training[place],
                "validation": validation[place],
            }
        )
    return records


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean; None if a value is unknown or not finite, or if there are no values."""
    known = []
    for value in values:
        # A mean without a diverged run would show a loss that its row does not have.
        if value is None or not isfinite(value):
            return None
        known.append(value)
    if not known:
        return None
    return rounded(sum(known) / len(known))


def _against(
    records: Records,
    unit: str,
    field: str,
    caption: str,
) -> Figure:
    import altair as alt

    counts = sorted(set(column(records, "workers")))
    panels = list(dict.fromkeys(column(records, "panel")))
    values = column(records, "loss")
    titles, times = {}, {}
    for name, (_, title, _) in WAYS.items():
        titles[name] = title
        if name == "time":
            titles[name] += f" ({unit})"
        times[name] = f"{titles[name]}|,"
    y_scale = alt.Scale(zero=False)
    least, most = min(values), max(values)
    # Small losses of the last epochs would be one line at the bottom.
    if least > 0 and most / least > STEEP:
        y_scale = alt.Scale(type="log")
    lines: Counter[tuple[str, int, str]] = Counter()
    for record in records:
        lines[record["panel"], record["workers"], record["set"]] += 1
    # A line of one value cannot be seen without its point.
    single = min(lines.values()) == 1
    base = (
        alt.Chart(data(records))
        .mark_line(
            strokeWidth=2,
            point=single,
        )
        .encode(
            alt.X(f"{field}:Q", title=titles[field], axis=_x_axis(records, field)),
            alt.Y(
                "loss:Q",
                title="Loss",
                axis=alt.Axis(tickCount=5),
                scale=y_scale,
            ),
            _colours(counts),
            alt.StrokeDash(
                "set:N",
                title="Loss on",
                scale=alt.Scale(
                    domain=["validation", "training"],
                    range=[[1, 0], [3, 3]],
                ),
                legend=alt.Legend(symbolType="stroke"),
            ),
            detail="panel:N",
            order="epoch:Q",
            tooltip=tooltip(
                panel="Strategy",
                workers="Workers",
                set="Loss on",
                **times,
                loss="Loss|.4g",
            ),
        )
    )
    drawn: Any = base.properties(width=WIDTH, height=HEIGHT)
    if len(panels) > 1:
        drawn = base.properties(width=WIDTH // 2 - 20, height=230).facet(
            facet=alt.Facet("panel:N", title=None, sort=panels),
            columns=2,
        )
    word = WAYS[field][0]
    return figure(
        f"loss-by-{field}",
        f"Loss against {word}",
        drawn,
        caption,
        wide=True,
        group="loss",
        choice=f"against {word}",
    )


def _x_axis(records: Records, field: str) -> "alt.Axis":
    import altair as alt

    if field != "epoch":
        return alt.Axis(
            format="~g",
            labelOverlap=True,
            tickCount=MOST_TICKS,
        )
    epochs = sorted(set(column(records, "epoch")))
    if len(epochs) <= MOST_TICKS:
        return alt.Axis(
            format="d",
            labelOverlap=True,
            values=epochs,
        )
    return alt.Axis(
        format="d",
        labelOverlap=True,
        tickCount=MOST_TICKS,
    )


def _colours(counts: Sequence[int]) -> "alt.Color":
    """Distinct colours for a few numbers of workers; for many a ramp that shows their order."""
    import altair as alt

    colours = ramp(len(counts))
    if len(counts) < 5:
        colours = list(COLOURS[: len(counts)])
    return alt.Color(
        "workers:O",
        title="Workers",
        scale=alt.Scale(domain=counts, range=colours),
        legend=alt.Legend() if len(counts) > 1 else None,
    )
