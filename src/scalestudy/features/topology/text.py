"""A node's topology as text and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING, Any

from scalestudy import units
from scalestudy.features.topology.figures import GIGA, gigabytes
from scalestudy.features.topology.pairs import Pairs
from scalestudy.features.topology.units import SELF, Topology, ranges
from scalestudy.measure.bandwidth import AllReduce
from scalestudy.report.format import number

if TYPE_CHECKING:
    from rich.table import Table

TOPOLOGY_SCHEMA = 2


def topology_text(
    topology: Topology,
    pairs: Pairs | None,
    sums: Sequence[AllReduce],
    *,
    host: str,
    width: int = 120,
    colour: bool = False,
) -> str:
    """Matrices and tables for a terminal."""
    from rich.text import Text

    from scalestudy.report.console import PlainConsole

    stream = StringIO()
    console = PlainConsole(
        file=stream, width=width, force_terminal=colour, no_color=not colour, highlight=False
    )
    names = [unit.name for unit in topology.units]
    console.print(Text(f"Topology of {host}", style="bold"))
    for remark in topology.remarks:
        console.print(Text(remark))
    console.print()
    console.print(_units(topology))

    def section(title: str, table: "Table", *below: str) -> None:
        console.print()
        console.print(Text(title, style="bold"))
        console.print(table)
        for line in below:
            console.print(Text(line))

    if len(names) > 1:
        legend = [f"{name:<5}{text}" for name, text in topology.legend().items()]
        section("Links", _matrix(names, topology.links), *legend)
    if len(topology.numa) > 1:
        nodes = [f"NUMA {number}" for number in topology.numa]
        rows = [[str(distance) for distance in row] for row in topology.distances]
        section("Distances of memory, as the firmware states them (10 is local)", _matrix(nodes, rows))
    if pairs is not None:
        texts = iter(gigabytes([value for row in pairs.bandwidth for value in row]))
        cells = [[next(texts) or SELF for _ in names] for _ in names]
        below = f"{units.size(pairs.bytes)} by {pairs.method}"
        section("Measured between two, from row to column (GB/s)", _matrix(names, cells), below)
    if sums:
        section(
            f"Measured in an all-reduce over {sums[0].ranks} processes: bus bandwidth (GB/s)",
            _sums(sums),
            "S/t × 2(n − 1)/n, as nccl-tests defines it; t is that of one of several sums chained in a call",
        )
    return stream.getvalue()


def topology_json(
    topology: Topology, pairs: Pairs | None, sums: Sequence[AllReduce], notes: Sequence[str], *, host: str
) -> str:
    """All of it, in bytes and seconds."""
    told: dict[str, Any] = {
        "schema_version": TOPOLOGY_SCHEMA,
        "host": host,
        **asdict(topology),
        "legend": topology.legend(),
        "pairs": None if pairs is None else asdict(pairs),
        "all_reduce": [asdict(each) | {"bus_bandwidth": each.bus_bandwidth} for each in sums],
        "notes": list(notes),
    }
    return json.dumps(told, indent=1)


def _units(topology: Topology) -> "Table":
    table = _table()
    for name in ("Unit", "What it is", "CPUs", "NUMA"):
        table.add_column(name, overflow="fold")
    for unit in topology.units:
        table.add_row(unit.name, unit.detail, ranges(unit.cpus), ranges(unit.numa))
    return table


def _matrix(names: Sequence[str], cells: Sequence[Sequence[str]]) -> "Table":
    table = _table()
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for name, row in zip(names, cells, strict=True):
        table.add_row(name, *row)
    return table


def _sums(sums: Sequence[AllReduce]) -> "Table":
    names = list(dict.fromkeys(each.collective for each in sums))
    found = {(each.collective, each.bytes): _significant(each.bus_bandwidth / GIGA) for each in sums}
    table = _table()
    table.add_column("Bytes", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    for size in sorted({each.bytes for each in sums}):
        table.add_row(units.size(size), *(found.get((name, size), "") for name in names))
    return table


def _table() -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")


def _significant(value: float) -> str:
    """Three significant digits without an exponent: sums of few bytes are slow by orders of magnitude."""
    return number(value, max(0, min(6, 2 - Decimal(f"{value:.2e}").adjusted()))) if value > 0 else "0"
