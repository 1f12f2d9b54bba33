"""What this node is made of, as its own tools say it, and the measured bandwidth of its links.

GPUs come from the driver, links from `nvidia-smi topo -m`; lscpu describes cores, caches and memory, and
hwloc (`lstopo`) draws them where it is installed.
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
"""Processes that sum together at most where there are no GPUs."""
DESCRIBE_LIMIT, COPY_LIMIT = 30.0, 300.0
"""Seconds that a program may take to describe the node, and to copy between all GPUs."""
SIZE = 32 * 2**20
"""Bytes of one copy: more than caches hold, as a model's gradients are."""
GIGA = 1e9
TIMED = ("collectives", "bandwidth")
TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*m")
Matrix = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Node:
    """A node as its own tools describe it.

    Attributes:
        host: Its name.
        gpus: Those that this process may use.
        cores: Logical CPUs that it may use.
        links: What `nvidia-smi topo -m` prints of links between GPUs; "" without any.
        cpu: lscpu's text; "" where it is not installed.
        drawing: hwloc's text, likewise.
    """

    host: str
    gpus: tuple[Gpu, ...]
    cores: tuple[int, ...]
    links: str = ""
    cpu: str = ""
    drawing: str = ""


@dataclass(frozen=True)
class NodeBandwidth:
    """All that was measured on a node.

    Attributes:
        copies: [from][to] bytes per second of copies between GPUs, None on the diagonal; None without GPUs.
        all_reduces: Over all GPUs, or over cores, by collective and size.
        notes: What kept anything from being measured.
    """

    copies: Matrix | None = None
    all_reduces: tuple[AllReduce, ...] = ()
    notes: tuple[str, ...] = ()


def read_node(environment: Mapping[str, str] = os.environ) -> Node:
    """This node, as a process with these variables may use it."""
    usable = {gpu.index for gpu in visible_gpus(environment)}
    gpus = tuple(gpu for gpu in read_gpus() if gpu.index in usable)
    return Node(
        socket.gethostname(), gpus, tuple(cores.granted()),
        links=output_of("nvidia-smi", "topo", "-m") if gpus else "",
        cpu=output_of("lscpu"), drawing=output_of("lstopo-no-graphics", "--of", "console"),
    )  # fmt: skip


def output_of(*command: str) -> str:
    """What a program prints; "" where it is not installed, fails or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DESCRIBE_LIMIT, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return TERMINAL_CODE.sub("", done.stdout)


def measure(node: Node, on_progress: Callable[[str], object] = lambda what: None) -> NodeBandwidth:
    """Measure the links of this node; `on_progress` is given what is measured now, for people.

    Raises:
        RunError: If a process that measures ends early, or does not answer in time.
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
    """[from][to] bytes per second, measured by an engine in a process of its own.

    Raises:
        RunError: If it fails, takes too long, or lists other GPUs.
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
        received = f"{len(rows)} that it lists"  # of a build without CUDA, or of MIG instances
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
    """Timings of every all-reduce that works here, and what kept others from working.

    There is a process for each GPU, or without any for each core.

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


def topology_document(node: Node, measured: NodeBandwidth) -> Document:
    """The page: units, links, and bandwidth where it was measured."""
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
    """`0-3,8` for 0, 1, 2, 3 and 8, as the kernel writes sets of CPUs."""
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
    """Bus bandwidth by size and collective."""
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
    """Three significant digits without an exponent: sums of few bytes are slow by orders of magnitude."""
    return number(value, max(0, min(6, 2 - Decimal(f"{value:.2e}").adjusted()))) if value > 0 else "0"
