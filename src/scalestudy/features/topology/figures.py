"""The picture of a node: its links, the bandwidth between its units, and all of them in an all-reduce."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scalestudy import units
from scalestudy.features.topology.pairs import Pairs
from scalestudy.features.topology.units import SELF, Topology, kind_of
from scalestudy.measure.bandwidth import AllReduce
from scalestudy.report.figure import Figure, data, figure
from scalestudy.report.format import decimals, number
from scalestudy.report.style import series_style

if TYPE_CHECKING:
    import altair as alt

GIGA = 1e9
CELLS = (56, 40)
"""Pixels of a cell of few units and of many; a matrix of eight fits a phone."""
NEAR, FAR = (0x00, 0x4F, 0x7D), (0xE3, 0xEE, 0xF5)
DARK_INK, LIGHT_INK = "#1B1F24", "#FFFFFF"


def topology_figures(
    topology: Topology, pairs: Pairs | None, sums: Sequence[AllReduce], host: str
) -> list[Figure]:
    """The figures that there is something to draw in, each small enough for a phone."""
    found = [_links(topology, host)]
    if pairs is not None and len(topology.units) > 1:
        found.append(_bandwidth(topology, pairs))
    if sums:
        found.append(_all_reduce(sums))
    return found


def topology_picture(topology: Topology, pairs: Pairs | None, sums: Sequence[AllReduce], host: str) -> Figure:
    """All of them as one picture."""
    parts = [part.spec for part in topology_figures(topology, pairs, sums, host)]
    inner = [{key: value for key, value in part.items() if key != "datasets"} for part in parts]
    spec = {
        "hconcat": inner,
        "spacing": 44,
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
        # Only the outermost chart may hold data by name.
        "datasets": {name: rows for part in parts for name, rows in part.get("datasets", {}).items()},
    }
    return Figure("topology", f"Links of {host}", "", spec, wide=True)


def gigabytes(values: Sequence[float | None]) -> list[str]:
    """Bytes per second as texts in GB/s with the same number of decimals; "" for None."""
    known = [value / GIGA for value in values if value is not None]
    digits = decimals(known) if known else 0
    return ["" if value is None else number(value / GIGA, digits) for value in values]


def _links(topology: Topology, host: str) -> Figure:
    import altair as alt

    legend = topology.legend()
    shades = _shades(len(legend))
    kinds = dict(zip(legend, shades, strict=True))
    labels = {name: f"{name}: {text}" for name, text in legend.items()}
    records = [
        {
            "row": a.name, "column": b.name, "text": link, "kind": labels[kind_of(link)],
            "ink": _ink(kinds[kind_of(link)]),
        }
        for a, row in zip(topology.units, topology.links, strict=True)
        for b, link in zip(topology.units, row, strict=True)
        if link != SELF
    ]  # fmt: skip
    legend_below = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=400)
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=list(labels.values()), range=shades),
        legend=legend_below,
    )
    what = "GPUs" if topology.kind == "gpu" else "cores"
    return figure(
        "links",
        f"Links between the {what} of {host}",
        _matrix(topology, records, colour),
        "The nearer two units are, the darker their cell.",
    )


def _bandwidth(topology: Topology, pairs: Pairs) -> Figure:
    import altair as alt

    flat = [value for row in pairs.bandwidth for value in row]
    texts = iter(gigabytes(flat))
    most = max((value for value in flat if value is not None), default=1.0)
    records: list[dict[str, Any]] = []
    for a, row in zip(topology.units, pairs.bandwidth, strict=True):
        for b, value in zip(topology.units, row, strict=True):
            text = next(texts)
            if value is not None:
                shade = _mixed(value / most)
                records.append(
                    {"row": a.name, "column": b.name, "text": text, "shade": shade, "ink": _ink(shade)}
                )
    colour = alt.Color("shade:N", scale=None, legend=None)
    return figure(
        "pairs",
        "Measured between two (GB/s)",
        _matrix(topology, records, colour),
        f"From the unit of the row to that of the column, median of transfers of {units.size(pairs.bytes)}: "
        f"{pairs.method}.",
    )


def _all_reduce(sums: Sequence[AllReduce]) -> Figure:
    import altair as alt

    names = list(dict.fromkeys(each.collective for each in sums))
    colours, shapes = series_style(names, names, by_strategy=False)
    records = [
        {
            "series": each.collective,
            "size": each.bytes,
            "value": each.bus_bandwidth / GIGA,
            "text": units.size(each.bytes),
        }
        for each in sums
    ]
    sizes = sorted({each.bytes for each in sums})
    shown = sizes[:: max(1, -(-len(sizes) // 5))]
    texts = " : ".join(f"datum.value == {size} ? '{units.size(size)}'" for size in shown) + " : ''"
    below = alt.Legend(title=None, orient="bottom", columns=1)
    chart = (
        alt.Chart(data(records))
        .mark_line(point={"size": 60, "filled": True}, strokeWidth=2)
        .encode(
            alt.X(
                "size:Q",
                title="Bytes summed",
                scale=alt.Scale(type="log", base=2),
                axis=alt.Axis(values=shown, labelExpr=texts),
            ),
            alt.Y(
                "value:Q",
                title="Bus bandwidth (GB/s)",
                scale=alt.Scale(domainMin=0),
                axis=alt.Axis(tickCount=6),
            ),
            alt.Color("series:N", scale=alt.Scale(domain=names, range=colours), legend=below),
            alt.Shape("series:N", scale=alt.Scale(domain=names, range=shapes), legend=below),
            tooltip=[
                alt.Tooltip("series:N", title="All-reduce"),
                alt.Tooltip("text:N", title="Bytes"),
                alt.Tooltip("value:Q", title="GB/s", format=".3~f"),
            ],
        )
        .properties(width=300, height=220)
    )
    ranks = " and ".join(str(rank) for rank in sorted({each.ranks for each in sums}))
    return figure(
        "all-reduce",
        "Measured in an all-reduce",
        chart,
        f"Over {ranks} processes. Bus bandwidth as nccl-tests defines it, S/t × 2(n − 1)/n: what each link "
        "carries, to be held against the matrix beside it.",
    )


def _matrix(topology: Topology, records: list[dict[str, Any]], colour: "alt.Color") -> "alt.LayerChart":
    import altair as alt

    names = [unit.name for unit in topology.units]
    cell = CELLS[len(names) > 5]
    bands = alt.Scale(domain=names, paddingInner=0.06, paddingOuter=0.03)
    level = max(len(name) for name in names) * 9 < cell
    top = alt.Axis(orient="top", labelAngle=0 if level else -60, domain=False, ticks=False)
    x = alt.X("column:N", sort=names, title=None, scale=bands, axis=top)
    y = alt.Y("row:N", sort=names, title=None, scale=bands)
    base = alt.Chart(data(records)).encode(x, y)
    chart: alt.LayerChart = (
        alt.layer(
            base.mark_rect(cornerRadius=3).encode(colour),
            base.mark_text(fontSize=13).encode(text="text:N", color=alt.Color("ink:N", scale=None)),
        )
        .resolve_scale(color="independent")
        .properties(width=alt.Step(cell), height=alt.Step(cell))
    )
    return chart


def _shades(count: int) -> list[str]:
    """From near to far; one alone is neither."""
    return [_mixed(1 - index / max(1, count - 1)) if count > 1 else _mixed(0.6) for index in range(count)]


def _mixed(share: float) -> str:
    return "#{:02X}{:02X}{:02X}".format(
        *(round(far + (near - far) * share) for near, far in zip(NEAR, FAR, strict=True))
    )


def _ink(shade: str) -> str:
    red, green, blue = (int(shade[at : at + 2], 16) for at in (1, 3, 5))
    return DARK_INK if 0.299 * red + 0.587 * green + 0.114 * blue > 115 else LIGHT_INK
