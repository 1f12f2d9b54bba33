"""A node and its measured bandwidth as a document, and as JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal

from scalestudy.features.check.report import AllReduce
from scalestudy.features.check.topology import SIZE, Matrix, Node, NodeBandwidth, ranges
from scalestudy.report.document import Block, Code, Document, Folded, Heading, Items, Section, Table
from scalestudy.report.format import decimals, number
from scalestudy.study.engines import collective
from scalestudy.util import units

SCHEMA = 4
GIGA = 1e9


def topology_document(node: Node, measured: NodeBandwidth) -> Document:
    """The page: units, links, and bandwidth where it was measured."""
    return Document(f"Topology of {node.host}", tuple(_blocks(node, measured)))


def topology_json(node: Node, measured: NodeBandwidth) -> str:
    """All of it, in bytes and seconds."""
    record = {
        "schema_version": SCHEMA,
        **asdict(node),
        "copies": measured.copies,
        "all_reduce": [
            row.model_dump() | {"collective": collective(row.collective).label}
            for row in measured.all_reduces
        ],
        "notes": list(measured.notes),
    }
    return json.dumps(record, indent=1) + "\n"


def _blocks(node: Node, measured: NodeBandwidth) -> Iterator[Block]:
    headings = tuple(Heading(name, numeric=False) for name in ("Unit", "What it is", "CPUs", "NUMA"))
    rows = [
        (f"GPU{gpu.index}", f"{gpu.name}, {gpu.bus}", ranges(gpu.cpus), ranges(gpu.numa)) for gpu in node.gpus
    ]
    yield Table(headings, tuple(rows or [("CPU", "granted to this process", ranges(node.cores), "")]))
    if measured.notes:
        yield Items(measured.notes)
    if node.links:
        yield Section("Links, as `nvidia-smi topo -m` names them", (Code(node.links.rstrip()),))
    if measured.copies is not None:
        names = [f"GPU{gpu.index}" for gpu in node.gpus]
        title = "Measured between two units, from row to column (GB/s)"
        yield Section(title, (_copies(names, measured.copies),))
    if measured.all_reduces:
        yield bandwidth_section(measured.all_reduces)
    for title, text in (("The processors, as lscpu tells", node.cpu), ("As hwloc draws it", node.drawing)):
        if text:
            yield Folded(title, (Code(text.rstrip()),))


def _copies(names: Sequence[str], copies: Matrix) -> Table:
    digits = decimals([value / GIGA for row in copies for value in row if value is not None])
    cells = [["X" if value is None else number(value / GIGA, digits) for value in row] for row in copies]
    footnote = f"Median of copies of {units.size(SIZE)}, over NVLink or PCIe as the driver allows"
    headings = (Heading("", numeric=False), *map(Heading, names))
    rows = tuple((name, *row) for name, row in zip(names, cells, strict=True))
    return Table(headings, rows, footnotes=(footnote,))


def bandwidth_section(all_reduces: Sequence[AllReduce]) -> Section:
    """Bus bandwidth by size and collective."""
    names = list(dict.fromkeys(row.collective for row in all_reduces))
    cells = {(row.bytes, row.collective): _significant(row.bus_bandwidth / GIGA) for row in all_reduces}
    rows = tuple(
        (units.size(size), *(cells.get((size, name), "") for name in names))
        for size in sorted({row.bytes for row in all_reduces})
    )
    footnote = "S/t × 2(n − 1)/n, as nccl-tests defines it: what each link carries"
    headings = (Heading("Bytes"), *(Heading(collective(name).label) for name in names))
    title = f"All-reduce over {all_reduces[0].ranks} ranks: bus bandwidth (GB/s)"
    return Section(title, (Table(headings, rows, footnotes=(footnote,)),))


def _significant(value: float) -> str:
    """Three significant digits without an exponent: sums of few bytes are slow by orders of magnitude."""
    return number(value, max(0, min(6, 2 - Decimal(f"{value:.2e}").adjusted()))) if value > 0 else "0"
