"""Sections on costs, on the samples that more workers need, and on studies that ran until decided."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.larger_batch import samples_needed
from scalestudy.analysis.runs import Key, swept_names
from scalestudy.analysis.sequential import ALPHA, LOOKS
from scalestudy.analysis.table import Row
from scalestudy.report.document import Block, Folded, Heading, Items, Paragraph, Section, Table
from scalestudy.report.format import number
from scalestudy.report.results import identity_headings, swept_columns
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
    names, lines = swept_columns(rows), []
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


POLICY = (
    "Every row was timed first, by runs that end when their step time is known; the times of a training are"
    " computed from them. Then the fastest row that its cost efficiency admits and its reference were trained"
    " with the same seeds, until a group-sequential test settled its quality; where it was worse, the search"
    " went on by bisection among rows with fewer workers. Rows were judged after {looks} seeds. Each look has"
    " a level of its own, so that a row worse by the margin is called no worse in at most {alpha:.1%} of"
    " studies (alpha spending: Lan and DeMets, Biometrika 70, 1983; Jennison and Turnbull 2000). Rows with"
    " equal first losses make equal updates, so that one of them was trained for all."
)


def settled_section(findings: Findings) -> Section | None:
    """The timing runs and trainings of each row; None if the study ran its whole grid."""
    if not findings.measures.sequential:
        return None
    looks = f"{', '.join(map(str, LOOKS[:-1]))} and {LOOKS[-1]}"
    names = swept_names(findings.runs)
    lines = tuple(
        (
            row.strategy,
            str(row.workers),
            *(str(row.key.swept.get(name, "")) for name in names),
            str(row.timings),
            str(row.runs - row.timings),
            reason(findings, row),
        )
        for row in findings.rows
    )
    headings = (
        *identity_headings(names),
        Heading("Timing runs", brief="timed"),
        Heading("Trainings", brief="trained"),
        Heading("Why", numeric=False),
    )
    table = Table(headings, lines, name="settled")
    paragraph = Paragraph(POLICY.format(looks=looks, alpha=ALPHA))
    return Section("What was run, and why", (paragraph, table), "settled")


def reason(findings: Findings, row: Row) -> str:
    """Why a row was trained, or why not."""
    decision = findings.advice.decision
    if row.runs > row.timings:
        return "the reference" if row.key == decision.reference else "may be chosen, or is compared with"
    if speaker := _speaker(findings, row.key):
        return f"equal updates as {speaker.label}, which was trained"
    efficiency = row.price.efficiency.value if row.price else None
    if efficiency is None:
        return "its times are excluded"
    if efficiency < decision.target:
        return f"cost efficiency {number(efficiency, 2)}, below {decision.target:g}"
    choice = decision.price
    if choice and row.price and row.price.duration >= choice.duration:
        return "not faster than the advised row"
    return "not reached yet"


def _speaker(findings: Findings, key: Key) -> Key | None:
    """The trained row whose quality is that of a row that was only timed."""
    updates = findings.measures.updates
    return next(
        (
            row.key
            for row in findings.rows
            if row.runs > row.timings and updates[row.key] == updates[key] and row.key != key
        ),
        None,
    )


MEANING = (
    "Useful speed-up U(n) = S(n)/r(n) is what remains of the speed-up S(n) if n workers need r(n) times the"
    " samples for the same quality (Shallue et al., JMLR 2019). Samples are interpolated between evaluations"
    " and compared by seed. Synchronous strategies make the same updates, so one series of trainings, also of"
    " `virtual` workers, gives r(n) for all of them."
)


def samples_section(findings: Findings) -> Section | None:
    """Samples to the target quality and the critical batch; None if the global batch does not grow."""
    sentences = samples_needed(findings.rows)
    if not sentences:
        return None
    return Section("What the larger batch costs", (Items(tuple(sentences)), Paragraph(MEANING)), "samples")
