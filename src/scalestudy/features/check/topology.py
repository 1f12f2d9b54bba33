"""The hardware of this node, as reported by system tools, and the measured bandwidth of its links.

The driver lists GPUs, and `nvidia-smi topo -m` their links. lscpu describes cores, caches and memory, and
hwloc (`lstopo`), if installed, draws them.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path

from scalestudy.cluster.environment import process_environment
from scalestudy.features.check.rank import check_here
from scalestudy.features.check.report import TOPICS, AllReduce, Plan
from scalestudy.hardware import cores
from scalestudy.hardware.cores import only_on
from scalestudy.hardware.devices import Gpu, read_gpus, visible_gpus
from scalestudy.report.document import Block, Code, Document, Folded, Heading, Items, Section, Table
from scalestudy.report.format import decimals, number
from scalestudy.study.engines import collective, engine_traits, installed_engine
from scalestudy.util import units
from scalestudy.util.errors import RunError

SCHEMA = 4
MOST_PROCESSES = 16
"""Maximum number of processes of an all-reduce without GPUs."""
DESCRIBE_LIMIT, COPY_LIMIT = 30.0, 300.0
"""Time limits in seconds for a program that describes the node, and for copies between all GPUs."""
SIZE = 32 * 2**20
"""Bytes of a copy. Like a model's gradients, it is larger than caches."""
GIGA = 1e9
TIMED = ("collectives", "bandwidth")
TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*m")
Matrix = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Node:
    """A node, as described by system tools.

    Attributes:
        host: Host name.
        gpus: GPUs that this process may use.
        cores: Logical CPUs that this process may use.
        links: Output of `nvidia-smi topo -m` on links between GPUs; "" without GPUs.
        cpu: Output of lscpu; "" if not installed.
        drawing: Output of hwloc; "" if not installed.
    """

    host: str
    gpus: tuple[Gpu, ...]
    cores: tuple[int, ...]
    links: str = ""
    cpu: str = ""
    drawing: str = ""


@dataclass(frozen=True)
class NodeBandwidth:
    """Measured bandwidths of a node.

    Attributes:
        copies: [from][to] bytes per second of copies between GPUs, None on the diagonal; None without GPUs.
        all_reduces: All-reduces over all GPUs, or over cores, by collective and size.
        notes: Reasons why something was not measured.
    """

    copies: Matrix | None = None
    all_reduces: tuple[AllReduce, ...] = ()
    notes: tuple[str, ...] = ()


def read_node(environment: Mapping[str, str] = os.environ) -> Node:
    """Describe this node, with the GPUs that a process with these variables may use."""
    usable = {gpu.index for gpu in visible_gpus(environment)}
    gpus = tuple(gpu for gpu in read_gpus() if gpu.index in usable)
    return Node(
        socket.gethostname(), gpus, tuple(cores.granted()),
        links=output_of("nvidia-smi", "topo", "-m") if gpus else "",
        cpu=output_of("lscpu"), drawing=output_of("lstopo-no-graphics", "--of", "console"),
    )  # fmt: skip


def output_of(*command: str) -> str:
    """Return the output of a program; "" if it is not installed, fails or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DESCRIBE_LIMIT, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return TERMINAL_CODE.sub("", done.stdout)


def measure(node: Node, on_progress: Callable[[str], object] = lambda what: None) -> NodeBandwidth:
    """Measure the links of this node; `on_progress` is called with the current activity.

    Raises:
        RunError: If a measuring process ends early, or does not answer in time.
    """
    if len(node.gpus or node.cores) < 2:
        return NodeBandwidth(notes=("one GPU or core alone has no links to measure",))
    copies = None
    if node.gpus:
        on_progress("Measuring copies between two GPUs")
        copies = between_gpus([gpu.uuid or str(gpu.index) for gpu in node.gpus])
    engine = engine_traits(installed_engine())
    if engine.missing_software():
        return NodeBandwidth(copies, notes=(f"no {engine.label} here: no all-reduce was measured",))
    return NodeBandwidth(copies, *time_all_reduces(node, on_progress))


def between_gpus(gpus: Sequence[str]) -> Matrix:
    """Measure [from][to] bytes per second between GPUs, with an engine in its own process.

    Raises:
        RunError: If the process fails, takes too long, or sees other GPUs.
    """
    engine = engine_traits(installed_engine())
    command = [sys.executable, "-P", "-m", engine.trial_module, json.dumps({"copies": SIZE})]
    variables = process_environment(os.environ, engine, gpus=gpus, quiet=True).applied(os.environ)
    wanted = f"{engine.label} to copy between {len(gpus)} GPUs"
    try:
        done = subprocess.run(
            command, env=variables,
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=COPY_LIMIT, check=False,
        )  # fmt: skip
        rows = json.loads(done.stdout.strip().splitlines()[-1])
        received = f"{len(rows)} that it lists"  # with a build without CUDA, or with MIG instances
    except subprocess.TimeoutExpired:
        rows, received = [], f"no answer within {COPY_LIMIT:.0f} s"
    except (IndexError, json.JSONDecodeError):
        rows, received = [], (done.stderr.strip().splitlines() or ["no output"])[-1]
    if len(rows) != len(gpus):
        action = "Look at `nvidia-smi` and `scalestudy check`; add --no-measure to skip measuring."
        raise RunError(wanted, received, action)
    return tuple(tuple(row) for row in rows)


def time_all_reduces(
    node: Node, on_progress: Callable[[str], object] = lambda text: None
) -> tuple[tuple[AllReduce, ...], tuple[str, ...]]:
    """Time every all-reduce that works here, and return the timings and why others do not work.

    There is one process for each GPU, or for each core if there are no GPUs.

    Raises:
        RunError: If the processes end without a report.
    """
    skip = tuple(topic for topic in TOPICS if topic not in TIMED)
    cpus = [] if node.gpus else node.cores[:MOST_PROCESSES]
    workers, device = len(node.gpus or cpus), "gpu" if node.gpus else "cpu"
    plan = Plan(engine=installed_engine(), workers=workers, device=device, skip=skip)
    with tempfile.TemporaryDirectory(prefix="scalestudy-topology-") as folder, only_on(cpus):
        report = check_here(Path(folder) / "check", plan, on_progress)
    notes = (
        f"{line.topic}, {line.where}: {line.seen}. {line.action}"
        for line in report.lines
        if line.status != "pass" and line.topic in ("ranks", *TIMED)
    )
    return report.bandwidth, tuple(notes)


def topology_json(node: Node, measured: NodeBandwidth) -> str:
    """Return the description and measurements of a node as JSON, in bytes and seconds."""
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


def topology_document(node: Node, measured: NodeBandwidth) -> Document:
    """Return the page: processors, links, and measured bandwidths."""
    return Document(f"Topology of {node.host}", tuple(_blocks(node, measured)))


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
    for title, text in (
        ("Processors, as reported by lscpu", node.cpu),
        ("Topology, as drawn by hwloc", node.drawing),
    ):
        if text:
            yield Folded(title, (Code(text.rstrip()),))


def ranges(numbers: Collection[int]) -> str:
    """Return `0-3,8` for 0, 1, 2, 3 and 8, as the kernel writes sets of CPUs."""
    runs = groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0])
    ends = [[number for _, number in run] for _, run in runs]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ends)


def _copies(names: Sequence[str], copies: Matrix) -> Table:
    digits = decimals([value / GIGA for row in copies for value in row if value is not None])
    cells = [["X" if value is None else number(value / GIGA, digits) for value in row] for row in copies]
    footnote = f"Median of copies of {units.size(SIZE)}, over NVLink or PCIe as the driver allows"
    headings = (Heading("", numeric=False), *map(Heading, names))
    rows = tuple((name, *row) for name, row in zip(names, cells, strict=True))
    return Table(headings, rows, footnotes=(footnote,))


def bandwidth_section(all_reduces: Sequence[AllReduce]) -> Section:
    """Return a table of the bus bandwidth by size and collective."""
    names = list(dict.fromkeys(row.collective for row in all_reduces))
    cells = {(row.bytes, row.collective): _significant(row.bus_bandwidth / GIGA) for row in all_reduces}
    rows = tuple(
        (units.size(size), *(cells.get((size, name), "") for name in names))
        for size in sorted({row.bytes for row in all_reduces})
    )
    footnote = "S/t × 2(n − 1)/n, as defined by nccl-tests: the bandwidth of each link"
    headings = (Heading("Bytes"), *(Heading(collective(name).label) for name in names))
    title = f"All-reduce over {all_reduces[0].ranks} ranks: bus bandwidth (GB/s)"
    return Section(title, (Table(headings, rows, footnotes=(footnote,)),))


def _significant(value: float) -> str:
    """Format with three significant digits and no exponent, since bandwidths span orders of magnitude."""
    return number(value, max(0, min(6, 2 - Decimal(f"{value:.2e}").adjusted()))) if value > 0 else "0"
