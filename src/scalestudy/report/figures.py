"""The figures of a study, as Vega-Lite specifications built with Altair."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.study import Study
from scalestudy.report import series
from scalestudy.report.axes import dodge, domain, is_logarithmic, workers
from scalestudy.report.style import COLOURS, DASHES, ramp, series_style

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 640, 360
GUIDE: dict[str, Any] = {"strokeDash": [5, 4], "strokeWidth": 1.5}


@dataclass(frozen=True)
class Figure:
    """One figure: a file name without its ending, its texts and its Vega-Lite specification."""

    name: str
    title: str
    caption: str
    """How to read it."""
    spec: dict[str, Any]
    """Without colours of ground and ink: those come from `style.config`."""
    wide: bool = False
    """Whether it needs the whole width of a page."""


def figures(study: Study) -> list[Figure]:
    """All figures that the finished runs can fill."""
    makers = (_speedup, _quality, _efficiency, _phases, _loss_by_epoch, _loss_by_time)
    return [figure for figure in (make(study) for make in makers) if figure is not None]


def _speedup(study: Study) -> Figure | None:
    import altair as alt

    records = series.measured(study, "speedup")
    counts = sorted({record["workers"] for record in records})
    if len(counts) < 2:
        return None
    ends = (counts[0], counts[-1])
    scale = alt.Scale(type="log", base=2) if is_logarithmic(counts) else alt.Scale(domainMin=0)
    y = alt.Y("value:Q", title="Speed-up S", scale=scale, axis=alt.Axis(tickCount=7, format="~g"))
    ideal = [{"workers": count, "value": count} for count in ends]
    line = alt.Chart(_data(ideal)).mark_line(**GUIDE).encode(workers(counts), y)
    label = (
        alt.Chart(_data([ideal[-1] | {"text": "ideal"}]))
        .mark_text(align="right", dx=-10, dy=-4)
        .encode(workers(counts), y, text="text:N")
    )
    chart = _lines(study, records, counts, y, name="S", base=[line, label])
    return _figure(
        "speedup",
        "Speed-up against workers",
        chart,
        "The dashed line is ideal: n workers, n times the samples per second. A curve that bends away from"
        " it loses time to what does not share out. " + _bars(records),
    )


def _efficiency(study: Study) -> Figure | None:
    import altair as alt

    records = series.measured(study, "efficiency")
    counts = sorted({record["workers"] for record in records})
    if len(counts) < 2:
        return None
    tops = [float(record.get("high") or record["value"]) for record in records]
    top = max(1.12, *tops)
    y = alt.Y(
        "value:Q",
        title="Efficiency S/n",
        scale=alt.Scale(domain=[0, min(top, 1.5)]),
        axis=alt.Axis(tickCount=6),
    )
    levels = [(1.0, "ideal"), (study.target, f"worth its cost: {study.target:g}")]
    marks = [{"value": value, "text": text, "workers": domain(counts)[0]} for value, text in levels]
    rule = alt.Chart(_data(marks)).mark_rule(**GUIDE).encode(y)
    label = (
        alt.Chart(_data(marks)).mark_text(align="left", dx=4, dy=-8).encode(workers(counts), y, text="text:N")
    )
    return _figure(
        "efficiency",
        "Efficiency against workers",
        _lines(study, records, counts, y, name="Efficiency", base=[rule, label]),
        "The share of each worker that pays. Points below the lower dashed line cost more worker-hours than"
        " the advice above accepts. " + _bars(records),
    )


def _quality(study: Study) -> Figure | None:
    import altair as alt

    records = series.measured(study, "quality")
    if not records:
        return None
    counts = sorted({record["workers"] for record in records})
    metric = metric_label(study.rows[0].metric)
    split = study.runs[0].result.quality_split
    y = alt.Y(
        "value:Q", title=f"{metric} ({split} set)", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6)
    )
    return _figure(
        "quality",
        "Quality against workers",
        _lines(study, records, counts, y, name=metric),
        f"{metric} after the last epoch; level is good, falling means that the larger global batch costs"
        " quality. " + _bars(records),
    )


def _lines(
    study: Study,
    records: series.Records,
    counts: list[int],
    y: "alt.Y",
    *,
    name: str,
    base: "list[Any] | None" = None,
) -> Any:
    """Lines, points and error bars, one colour and shape a series."""
    import altair as alt

    labels = series.labels(study)
    shown = [label for label in labels.names if any(record["series"] == label for record in records)]
    colours, shapes = series_style(shown, shown, labels.by_strategy)
    title = "Strategy" if labels.by_strategy else ", ".join(study.rows[0].key.swept)
    colour = alt.Color(
        "series:N",
        title=title,
        scale=alt.Scale(domain=shown, range=colours),
        legend=alt.Legend(symbolOpacity=1),
    )
    shape = alt.Shape("series:N", title=title, scale=alt.Scale(domain=shown, range=shapes))
    picked = alt.selection_point(name="picked", fields=["series"], bind="legend")
    faded = alt.when(picked).then(alt.value(1.0)).otherwise(alt.value(0.12))
    tooltip = [
        alt.Tooltip("strategy:N", title="Strategy"),
        *([alt.Tooltip("variant:N", title="Swept")] if len(labels.variants) > 1 else []),
        alt.Tooltip("workers:Q", title="Workers"),
        alt.Tooltip("text:N", title=name),
        alt.Tooltip("runs:Q", title="Runs"),
    ]
    has_bars = any("low" in record for record in records)
    for record in records:
        shift, factor = dodge(counts, shown.index(record["series"]), len(shown)) if has_bars else (0.0, 1.0)
        record["place"] = round(record["workers"] * factor + shift, 4)
    x = workers(counts, "place")
    drawn = alt.Chart(_data(records)).encode(x, y, colour, opacity=faded)
    line = drawn.mark_line(strokeWidth=2.5)
    if labels.both:
        dashes = [list(DASHES[index % len(DASHES)]) for index in range(len(labels.variants))]
        scale = alt.Scale(domain=labels.variants, range=dashes)
        line = line.encode(strokeDash=alt.StrokeDash("variant:N", title=None, scale=scale))
    bars = [
        drawn.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        drawn.mark_tick(thickness=2, size=9, orient="horizontal").encode(y="low:Q"),
        drawn.mark_tick(thickness=2, size=9, orient="horizontal").encode(y="high:Q"),
    ]
    points = drawn.mark_point(filled=True, size=90).encode(shape=shape, tooltip=tooltip)
    layers = [*(base or []), line, *(bars if has_bars else []), points.add_params(picked)]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _bars(records: series.Records) -> str:
    if any("low" in record for record in records):
        return "Bars are 95 % intervals over seeds; they are set slightly apart so that none hides another."
    return "One run each, so there are no intervals."


def _loss_by_epoch(study: Study) -> Figure | None:
    return _loss(
        study,
        "loss-by-epoch",
        "Loss against epochs",
        field="epoch",
        axis=lambda unit: "Epoch",
        caption="Mean over seeds. Equal curves mean that more workers learn as much from an epoch; curves"
        " that lie higher learn less from it, since they take fewer and larger steps.",
    )


def _loss_by_time(study: Study) -> Figure | None:
    return _loss(
        study,
        "loss-by-time",
        "Loss against training time",
        field="time",
        axis=lambda unit: f"Training time ({unit})",
        caption="The same losses over training time: the curve furthest to the left reaches a given loss"
        " first. Evaluation, start-up and compilation are not in this time.",
    )


def _loss(
    study: Study, name: str, title: str, *, field: str, axis: Callable[[str], str], caption: str
) -> Figure | None:
    import altair as alt

    records, unit = series.losses(study)
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
        alt.Chart(_data(records))
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
        return _figure(name, title, chart.properties(width=WIDTH, height=HEIGHT), caption, wide=True)
    faceted = chart.properties(width=WIDTH // 2 - 20, height=230).facet(
        facet=alt.Facet("panel:N", title=None, sort=panels), columns=2
    )
    return _figure(name, title, faceted, caption, wide=True)


def _epochs(records: series.Records) -> "alt.Axis":
    import altair as alt

    count = min(6, max(record["epoch"] for record in records))
    return alt.Axis(format="d", tickMinStep=1, tickCount=count, labelOverlap=True)


def _phases(study: Study) -> Figure | None:
    import altair as alt

    records, names, unit = series.phases(study)
    if not records:
        return None
    bars = list(dict.fromkeys(record["bar"] for record in records))
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(names))]
    picked = alt.selection_point(name="picked", fields=["phase"], bind="legend")
    chart = (
        alt.Chart(_data(records))
        .mark_bar(height={"band": 0.78})
        .encode(
            alt.X("time:Q", title=f"Wall time ({unit})", axis=alt.Axis(grid=True, tickCount=6)),
            alt.Y("bar:N", title=None, sort=bars, axis=alt.Axis(labelLimit=200)),
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
    return _figure(
        "phases",
        "Where the time goes",
        chart,
        "Wall time of a run by phase, from the start of its processes to its result, mean over seeds."
        " What is not training shrinks little with more workers.",
    )


def _data(records: "series.Records | list[dict[str, Any]]") -> "alt.InlineData":
    import altair as alt

    return alt.InlineData(values=records)


def _figure(name: str, title: str, chart: Any, caption: str, wide: bool = False) -> Figure:
    spec = chart.properties(title=title).to_dict()
    # The library's own theme and the address of its schema do not belong in a page of ours.
    for key in ("$schema", "config", "usermeta"):
        spec.pop(key, None)
    return Figure(name, title, caption, spec, wide)
