"""The section on a sweep over cores per worker: its table, its figures, and the best over cores."""

from collections.abc import Sequence
from typing import Any

from scalestudy.analysis.cores import Best, Sweep, best_over_cores, sweeps
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key, describe
from scalestudy.report.document import Block, Drawing, Folded, Heading, Paragraph, Section, Table
from scalestudy.report.figure import HEIGHT, WIDTH, Figure, data, figure
from scalestudy.report.format import decimals, number, time_unit, with_interval
from scalestudy.report.style import ramp

CORES = Heading("Cores", "a worker", "cores")
USES = (("GPUs", "gpu_percent"), ("CPUs", "cpu_percent"))


def cores_section(findings: Findings) -> Section | None:
    """Time and utilisation against cores per worker; None where fewer than two numbers were tried."""
    found = sweeps(findings.rows)
    if not found:
        return None
    unit, length = time_unit([row.training_seconds.value or 0.0 for each in found for _, row in each.rows])
    bests = best_over_cores(found)
    blocks: list[Block] = [
        Paragraph(
            "Cores read and prepare what a worker computes: with too few it waits for input, and beyond some"
            " number more of them gain nothing. The best of each row of workers is marked (*)."
        ),
        _best_table(bests, unit, length),
        *(Drawing(each) for each in _figures(found, unit, length)),
        Folded("Every number of cores", (_table(found, unit, length),)),
    ]
    return Section("Cores per worker", tuple(blocks), "cores")


def _label(key: Key) -> str:
    return key.strategy + (f" ({describe(key.swept)})" if key.swept else "")


def _table(found: Sequence[Sweep], unit: str, length: float) -> Table:
    """Every number of cores."""
    headings = (
        Heading("Strategy", brief="strategy", numeric=False), Heading("Workers", brief="n"), CORES,
        Heading("Training time", unit, f"time {unit}"), Heading("Best", brief="best", numeric=False),
        Heading("GPUs", "% busy", "GPU %"), Heading("CPUs", "% busy", "CPU %"),
    )  # fmt: skip
    digits = decimals(
        [(row.training_seconds.value or 0.0) / length for each in found for _, row in each.rows]
    )
    lines = []
    for each in found:
        for cores, row in each.rows:
            time = with_interval(row.training_seconds.scaled(1 / length), digits)
            mark = "*" if cores == each.best[0] else ""
            busy = [getattr(row.costs, name) for _, name in USES]
            told = ["" if value is None else number(value, 0) for value in busy]
            lines.append((_label(each.key), str(each.key.workers), str(cores), time, mark, *told))
    shown = [place for place in range(len(headings)) if any(line[place] for line in lines)]
    return Table(
        tuple(headings[place] for place in shown),
        tuple(tuple(line[place] for place in shown) for line in lines),
        "Training time and utilisation by cores per worker", name="cores",
    )  # fmt: skip


def _best_table(bests: Sequence[Best], unit: str, length: float) -> Table:
    """The best over cores: T, S and E as a study of workers alone would have them."""
    headings = (
        Heading("Strategy", brief="strategy", numeric=False), Heading("Workers", brief="n"), CORES,
        Heading("Training time", unit, f"time {unit}"), Heading("Speed-up", "training time", "S"),
        Heading("Efficiency", "training time", "E"),
    )  # fmt: skip
    times = [(each.row.training_seconds.value or 0.0) / length for each in bests]
    digits = decimals(times)
    lines = tuple(
        (
            _label(each.sweep.key), str(each.sweep.key.workers), str(each.cores), number(time, digits),
            *("" if value is None else number(value, 2) for value in (each.speedup, each.efficiency)),
        )
        for each, time in zip(bests, times, strict=True)
    )  # fmt: skip
    return Table(
        headings, lines, "The best over cores",
        ("Each number of workers has the cores that it trained fastest with, one worker too.",),
        "best-over-cores",
    )  # fmt: skip


def _figures(found: Sequence[Sweep], unit: str, length: float) -> list[Figure]:
    records = [
        {
            "series": _series(each), "cores": cores, "best": cores == each.best[0],
            "time": (row.training_seconds.value or 0.0) / length,
            **{name: getattr(row.costs, name) for _, name in USES},
        }
        for each in found for cores, row in each.rows
    ]  # fmt: skip
    names = [_series(each) for each in found]
    return [_times(records, names, unit), *_busy(records, names)]


def _series(each: Sweep) -> str:
    noun = "worker" if each.key.workers == 1 else "workers"
    return f"{_label(each.key)}, {each.key.workers} {noun}"


def _colour(names: Sequence[str]) -> Any:
    import altair as alt

    colours = ramp(len(names)) if len(names) > 1 else ["#0072B2"]
    return alt.Color("series:N", title="Workers", scale=alt.Scale(domain=list(names), range=colours))


def _cores(records: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    counts = sorted({record["cores"] for record in records})
    return alt.X(
        "cores:Q", title="Cores per worker",
        scale=alt.Scale(type="log", base=2, domain=[counts[0] / 1.1, counts[-1] * 1.1], nice=False),
        axis=alt.Axis(values=counts, format="d"),
    )  # fmt: skip


def _times(records: list[dict[str, Any]], names: Sequence[str], unit: str) -> Figure:
    import altair as alt

    y = alt.Y("time:Q", title=f"Training time ({unit})", scale=alt.Scale(domainMin=0))
    tooltip = [
        alt.Tooltip("series:N", title="Series"), alt.Tooltip("cores:Q", title="Cores per worker"),
        alt.Tooltip("time:Q", title=f"Training time ({unit})", format=",.3~f"),
    ]  # fmt: skip
    drawn = alt.Chart(data(records)).encode(_cores(records), y, _colour(names))
    points = drawn.mark_point(filled=True, size=60).encode(tooltip=tooltip)
    best = drawn.transform_filter("datum.best").mark_point(size=260, strokeWidth=2.5)
    chart = alt.layer(drawn.mark_line(strokeWidth=2.5), best, points).properties(width=WIDTH, height=HEIGHT)
    return figure(
        "cores", "Training time by cores per worker", chart,
        "Circles mark the best of each number of workers. Where a line is level, more cores gain nothing.",
    )  # fmt: skip


def _busy(records: list[dict[str, Any]], names: Sequence[str]) -> list[Figure]:
    """How busy GPUs and cores were, where that is known."""
    import altair as alt

    long = [
        {"series": record["series"], "cores": record["cores"], "of": words, "percent": record[name]}
        for record in records for words, name in USES if record[name] is not None
    ]  # fmt: skip
    if not long:
        return []
    kinds = [words for words, _ in USES if any(record["of"] == words for record in long)]
    dash = alt.StrokeDash(
        "of:N", title="Busy", scale=alt.Scale(domain=kinds, range=[[1, 0], [5, 4]][: len(kinds)])
    )
    drawn = alt.Chart(data(long)).encode(
        _cores(long), alt.Y("percent:Q", title="Busy (%)", scale=alt.Scale(domain=[0, 100])), _colour(names)
    )  # fmt: skip
    tooltip = [
        alt.Tooltip("series:N", title="Series"), alt.Tooltip("of:N", title="Of"),
        alt.Tooltip("cores:Q", title="Cores per worker"),
        alt.Tooltip("percent:Q", title="Busy (%)", format=".0f"),
    ]  # fmt: skip
    points = drawn.mark_point(filled=True, size=60).encode(tooltip=tooltip)
    chart = alt.layer(drawn.mark_line(strokeWidth=2).encode(strokeDash=dash), points)
    caption = "Mean utilisation of the GPUs and of the cores granted, over the training time."
    return [
        figure(
            "cores-busy",
            "How busy, by cores per worker",
            chart.properties(width=WIDTH, height=HEIGHT),
            caption,
        )
    ]
