"""The section on costs: hours, energy, utilisation, bytes moved and operations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.table import Row
from scalestudy.report.document import Block, Folded, Heading, Items, Section, Table
from scalestudy.report.format import number
from scalestudy.report.results import identity_headings
from scalestudy.util import units


@dataclass(frozen=True)
class CostColumn:
    """A quantity: its heading, its column in the table, and its format."""

    heading: Heading
    name: str
    written: Callable[[float], str]

    def value(self, row: Row) -> float | None:
        """The quantity for a row; None if unknown."""
        value: float | None = getattr(row.costs, self.name)
        return value


def _percent(value: float) -> str:
    return number(value, 0)


def _share(value: float) -> str:
    return number(100 * value, 1 if value < 0.1 else 0)


def _watt_hours(value: float) -> str:
    return units.scaled(value, "Wh") if value >= 1 else units.scaled(1000 * value, "mWh")


TAKEN = (
    CostColumn(Heading("Device time", "wall clock", "devices"), "device_hours", units.cost),
    CostColumn(Heading("Node time", "wall clock", "nodes"), "node_hours", units.cost),
    CostColumn(Heading("Energy", "training", "energy"), "watt_hours", _watt_hours),
    CostColumn(Heading("GPUs", "% busy", "GPU %"), "gpu_percent", _percent),
    CostColumn(Heading("CPUs", "% busy", "CPU %"), "cpu_percent", _percent),
    CostColumn(Heading("GPU memory", "peak", "GPU mem"), "gpu_memory_bytes", units.size),
    CostColumn(Heading("Host memory", "peak of a process", "memory"), "peak_memory_bytes", units.size),
    CostColumn(Heading("FLOP", "per sample", "FLOP"), "flops_per_sample", lambda v: units.scaled(v, "FLOP")),
    CostColumn(
        Heading("FLOP/s", "reached", "FLOP/s"), "flops_per_second", lambda v: units.scaled(v, "FLOP/s")
    ),
    CostColumn(Heading("MFU", "% of peak", "MFU %"), "mfu", _share),
)
MOVED = (
    CostColumn(Heading("Sent", "network", "sent"), "network_sent_bytes", units.size),
    CostColumn(Heading("Received", "network", "received"), "network_received_bytes", units.size),
    CostColumn(Heading("Loopback", "in a node", "loopback"), "loopback_bytes", units.size),
    CostColumn(Heading("Read", "storage", "read"), "read_bytes", units.size),
    CostColumn(Heading("Written", "storage", "written"), "written_bytes", units.size),
)
MEANINGS = {
    "device_hours": "Device and node time last from the start of the processes to the result, as sites"
    " charge them. Training time is shorter: a column of its own in the results.",
    "watt_hours": "Energy is that of the {energy} during training, without the rest of the node.",
    "loopback_bytes": "Network and loopback bytes are those of whole nodes, including other programs.",
    "read_bytes": "Reads from the page cache do not count as reads from storage.",
    "flops_per_sample": "FLOP are those of matrix products and convolutions in the graph of the training"
    " step, forward and backward.",
    "mfu": "MFU is the FLOP/s reached in the steady epochs, divided by the peak of all devices (dense, as"
    " stated by the manufacturer).",
}
"""Meaning of each column, printed below the table if the table has the column."""
WORDS = {
    "cpu_joules": "the processors' energy",
    "gpu_joules": "the GPUs' energy",
    "read_bytes": "bytes of storage",
    "network_sent_bytes": "bytes on the network",
    "flops_per_sample": "FLOP",
    "mfu": "MFU",
}
"""Names of columns in text."""


def costs_section(findings: Findings) -> Section | None:
    """Tables of the known quantities; None if there are none."""
    rows = [row for row in findings.rows if any(column.value(row) is not None for column in TAKEN + MOVED)]
    used = [column for column in TAKEN + MOVED if any(column.value(row) is not None for row in rows)]
    if not used:
        return None
    blocks: list[Block] = []
    if taken := [column for column in used if column in TAKEN]:
        blocks.append(_table("Per run, from start to result or during training", rows, taken))
    if moved := [column for column in used if column in MOVED]:
        blocks.append(Folded("Bytes moved during training", (_table("", rows, moved),)))
    shown = {column.name for column in used}
    parts = {part for row in rows if row.costs.energy_of for part in row.costs.energy_of.split(" + ")}
    energy = " and ".join(
        part.replace("gpus", "GPUs").replace("cpus", "processors") for part in sorted(parts)
    )
    meanings = [text.format(energy=energy) for name, text in MEANINGS.items() if name in shown]
    return Section("What it cost", (*blocks, Items((*meanings, *_unmeasured(rows)))), "costs")


def _table(caption: str, rows: Sequence[Row], columns: Sequence[CostColumn]) -> Table:
    names = sorted({name for row in rows for name in row.key.swept})
    lines = []
    for row in rows:
        swept = [str(row.key.swept.get(name, "")) for name in names]
        values = [(column, column.value(row)) for column in columns]
        written = ["" if value is None else column.written(value) for column, value in values]
        lines.append((row.strategy, str(row.workers), *swept, *written))
    headings = (*identity_headings(names), *(column.heading for column in columns))
    return Table(headings, tuple(lines), caption, essential=len(names) + 3)


def _unmeasured(rows: Sequence[Row]) -> list[str]:
    reasons = [reason for row in rows for reason in (row.costs.unmeasured or "").split("; ") if reason]
    parts = [reason.partition(": ") for reason in dict.fromkeys(reasons)]
    return [f"Unknown: {WORDS.get(name, name)}, since {why}." for name, _, why in parts]
