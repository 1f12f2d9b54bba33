"""A node and its measured bandwidth as a document, and as JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal

from scalestudy.features.check.topology import Links, Node, ranges
from scalestudy.features.check.topology_bandwidth import AllReduce, Bandwidth, Pairs
from scalestudy.report.document import Block, Code, Document, Drawing, Folded, Heading, Items, Section, Table
from scalestudy.report.figure import Figure, data, figure
from scalestudy.report.format import decimals, number
from scalestudy.report.style import series_style
from scalestudy.util import units

SCHEMA = 3
GIGA = 1e9


def topology_document(node: Node, measured: Bandwidth) -> Document:
    """The page: units, links, and bandwidth where it was measured."""
    return Document(f"Topology of {node.host}", tuple(_blocks(node, measured)))


def topology_json(node: Node, measured: Bandwidth) -> str:
    """All of it, in bytes and seconds."""
    record = {
        "schema_version": SCHEMA,
        **asdict(node),
        "pairs": None if measured.pairs is None else asdict(measured.pairs),
        "all_reduce": [asdict(each) | {"bus_bandwidth": each.bus_bandwidth} for each in measured.all_reduces],
        "notes": list(measured.notes),
    }
    return json.dumps(record, indent=1) + "\n"


def _blocks(node: Node, measured: Bandwidth) -> Iterator[Block]:
    headings = tuple(Heading(name, numeric=False) for name in ("Unit", "What it is", "CPUs", "NUMA"))
    yield Table(
        headings,
        tuple((unit.name, unit.detail, ranges(unit.cpus), ranges(unit.numa)) for unit in node.units),
    )
    if measured.notes:
        yield Items(measured.notes)
    if node.links is not None:
        yield Section("Links, as `nvidia-smi topo -m` names them", tuple(_links(node.links)))
    if measured.pairs is not None:
        names = [unit.name for unit in node.units]
        yield Section(
            "Measured between two units, from row to column (GB/s)", (_pairs(names, measured.pairs),)
        )
    if measured.all_reduces:
        ranks = measured.all_reduces[0].ranks
        yield Section(
            f"Measured in an all-reduce over {ranks} processes: bus bandwidth (GB/s)",
            (_all_reduces(measured.all_reduces), Drawing(lambda: all_reduce_figure(measured.all_reduces))),
        )
    if node.drawing:
        yield Folded("The hardware, as hwloc draws it", (Code(node.drawing.rstrip()),))


def _links(links: Links) -> Iterator[Block]:
    yield _matrix(links.names, links.rows)
    yield Items(tuple(f"{name}: {meaning}" for name, meaning in links.legend.items()))


def _pairs(names: Sequence[str], pairs: Pairs) -> Table:
    known = [value / GIGA for row in pairs.bandwidth for value in row if value is not None]
    digits = decimals(known)
    cells = [
        ["X" if value is None else number(value / GIGA, digits) for value in row] for row in pairs.bandwidth
    ]
    return _matrix(names, cells, f"Median of transfers of {units.size(pairs.bytes)}: {pairs.method}")


def _matrix(names: Sequence[str], cells: Sequence[Sequence[str]], footnote: str = "") -> Table:
    headings = (Heading("", numeric=False), *map(Heading, names))
    rows = tuple((name, *row) for name, row in zip(names, cells, strict=True))
    return Table(headings, rows, footnotes=(footnote,) if footnote else ())


def _all_reduces(all_reduces: Sequence[AllReduce]) -> Table:
    names = list(dict.fromkeys(each.collective for each in all_reduces))
    cells = {(each.bytes, each.collective): _significant(each.bus_bandwidth / GIGA) for each in all_reduces}
    rows = tuple(
        (units.size(size), *(cells.get((size, name), "") for name in names))
        for size in sorted({each.bytes for each in all_reduces})
    )
    return Table(
        (Heading("Bytes"), *map(Heading, names)),
        rows,
        footnotes=("S/t × 2(n − 1)/n, as nccl-tests defines it: what each link carries",),
    )


def _significant(value: float) -> str:
    """Three significant digits without an exponent: sums of few bytes are slow by orders of magnitude."""
    return number(value, max(0, min(6, 2 - Decimal(f"{value:.2e}").adjusted()))) if value > 0 else "0"


def all_reduce_figure(all_reduces: Sequence[AllReduce]) -> Figure:
    """Bus bandwidth by size of the message, a line for each collective."""
    import altair as alt

    names = list(dict.fromkeys(each.collective for each in all_reduces))
    colours, shapes = series_style(names, names, by_strategy=False)
    records = [
        {"collective": each.collective, "size": each.bytes, "value": each.bus_bandwidth / GIGA}
        for each in all_reduces
    ]
    sizes = sorted({each.bytes for each in all_reduces})
    shown = sizes[:: max(1, -(-len(sizes) // 5))]
    texts = " : ".join(f"datum.value == {size} ? '{units.size(size)}'" for size in shown) + " : ''"
    legend = alt.Legend(title=None, orient="bottom", columns=2)
    chart = (
        alt.Chart(data(records))
        .mark_line(point={"size": 60, "filled": True}, strokeWidth=2)
        .encode(
            alt.X("size:Q", title="Bytes summed", scale=alt.Scale(type="log", base=2),
                  axis=alt.Axis(values=shown, labelExpr=texts)),
            alt.Y("value:Q", title="Bus bandwidth (GB/s)", scale=alt.Scale(domainMin=0)),
            alt.Color("collective:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
            alt.Shape("collective:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
            tooltip=["collective:N", "size:Q", alt.Tooltip("value:Q", title="GB/s", format=".3~f")],
        )
        .properties(width=420, height=240)
    )  # fmt: skip
    return figure(
        "all-reduce", "All-reduce", chart, "The dearest link limits large messages, latency small ones."
    )
