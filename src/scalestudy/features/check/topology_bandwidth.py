"""Measured bandwidth of a node's links: between each two units, and in an all-reduce over all of them."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy.features.check import topology_stream as stream
from scalestudy.features.check.line import TOPICS
from scalestudy.features.check.local import check_here
from scalestudy.features.check.plan import Plan
from scalestudy.features.check.topology import Node
from scalestudy.hardware.cores import only_on
from scalestudy.hardware.shadowing import library_path
from scalestudy.measure.bandwidth import bus_bandwidth
from scalestudy.study.engines import DEFAULT, collective, engine_traits
from scalestudy.util.errors import RunError

Matrix = tuple[tuple[float | None, ...], ...]
OnProgress = Callable[[str], object]
SIZE = 32 * 2**20
"""Bytes of one transfer: more than caches and socket buffers hold, as a model's gradients are."""
BEFORE, REPEATS = 1, 5
LIMIT = 300.0
"""Seconds for all transfers between GPUs, the import of the framework included."""
TIMED = ("collectives", "bandwidth")
CPU_METHOD = (
    "TCP over loopback between two processes, each pinned to one CPU of its unit: the way that RING and Gloo "
    "take within a node"
)
GPU_METHOD = (
    f"{engine_traits(DEFAULT).label}'s copy from one GPU to another, over NVLink or PCIe as the driver allows"
)


@dataclass(frozen=True)
class Pairs:
    """Measured bandwidth between units.

    Attributes:
        bandwidth: [from][to] bytes per second, median of the repeats; None on the diagonal.
        bytes: Size of one transfer.
        method: What was moved, and how.
    """

    bandwidth: Matrix
    bytes: int
    method: str


@dataclass(frozen=True)
class AllReduce:
    """One all-reduce over all units of a node.

    Attributes:
        collective: What summed, for people: "TensorFlow RING".
        ranks: Processes.
        bytes: Size of the message.
        seconds: Of one sum.
    """

    collective: str
    ranks: int
    bytes: int
    seconds: float

    @property
    def bus_bandwidth(self) -> float:
        """Bytes per second by nccl-tests' definition."""
        return bus_bandwidth(self.bytes, self.seconds, self.ranks)


@dataclass(frozen=True)
class Bandwidth:
    """All that was measured on a node.

    Attributes:
        pairs: Between each two units; None where there are not two.
        all_reduces: Over all units, by collective and size.
        notes: What kept anything from being measured.
    """

    pairs: Pairs | None = None
    all_reduces: tuple[AllReduce, ...] = ()
    notes: tuple[str, ...] = ()


def measure(node: Node, on_progress: OnProgress = lambda what: None) -> Bandwidth:
    """Measure the links of this node.

    Args:
        node: Its units.
        on_progress: Is given what is measured now, for people.

    Raises:
        RunError: If a process that measures ends early, or does not answer in time.
    """
    if len(node.units) < 2:
        return Bandwidth(notes=("one unit alone has no links to measure",))
    on_progress("Measuring between two units")
    if node.kind == "gpu":
        pairs = Pairs(between_gpus([unit.uuid or unit.name[3:] for unit in node.units]), SIZE, GPU_METHOD)
    else:
        pairs = Pairs(between_cpus([unit.cpus[0] for unit in node.units]), SIZE, CPU_METHOD)
    engine = engine_traits(DEFAULT)
    if engine.missing_software():
        return Bandwidth(pairs, notes=(f"no {engine.label} here: no all-reduce was measured",))
    on_progress(f"Measuring all-reduces (starts {engine.label} in each process)")
    return Bandwidth(pairs, *time_all_reduces(node))


def between_cpus(cpus: Sequence[int], *, size: int = SIZE) -> Matrix:
    """[from][to] bytes per second between processes pinned to these CPUs, one pair at a time.

    Raises:
        RunError: If a process ends early.
    """
    rows: list[list[float | None]] = [[None] * len(cpus) for _ in cpus]
    with _streams(cpus) as streams:
        for i, sender in enumerate(streams):
            for j, receiver in enumerate(streams):
                if i != j:
                    port = _ask(receiver, f"receive {size} {BEFORE + REPEATS}", cpus[j])
                    seconds = json.loads(_ask(sender, f"send {port} {size} {BEFORE + REPEATS}", cpus[i]))
                    rows[i][j] = size / statistics.median(seconds[BEFORE:])
    return tuple(map(tuple, rows))


@contextlib.contextmanager
def _streams(cpus: Sequence[int]) -> "Iterator[list[subprocess.Popen[str]]]":
    with contextlib.ExitStack() as held:
        processes = []
        for cpu in cpus:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", stream.__name__, str(cpu)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            held.callback(_close, process)
            processes.append(process)
        yield processes


def _close(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def _ask(process: "subprocess.Popen[str]", line: str, cpu: int) -> str:
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if not answer:
        process.kill()
        last = (process.communicate()[1].strip().splitlines() or ["it ended without a word"])[-1]
        raise RunError(
            f"a process pinned to CPU {cpu} to move bytes", last, "Measure on CPUs that are granted to you."
        )
    return answer.strip()


def between_gpus(gpus: Sequence[str]) -> Matrix:
    """[from][to] bytes per second, measured by an engine in a process of its own.

    Raises:
        RunError: If it fails, takes too long, or lists other GPUs.
    """
    engine = engine_traits(DEFAULT)
    command = [sys.executable, "-P", "-m", engine.pairs_module, "gpu", str(SIZE), ",".join(gpus)]
    try:
        done = subprocess.run(
            command, env=library_path(os.environ).applied(os.environ),
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False,
        )  # fmt: skip
        rows = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired as error:
        raise RunError(
            f"copies between GPUs within {LIMIT:.0f} s",
            "none in that time",
            "Look at `nvidia-smi`: another process may hold the GPUs; --no-measure leaves measuring out.",
        ) from error
    except (IndexError, json.JSONDecodeError) as error:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise RunError(
            f"{engine.label} to copy between the GPUs", last, "--no-measure leaves measuring out."
        ) from error
    if len(rows) != len(gpus):  # a build without CUDA, MIG instances
        raise RunError(
            f"{engine.label} to list {len(gpus)} GPUs, to copy between them",
            str(len(rows)),
            "`scalestudy check` says why; --no-measure leaves measuring out.",
        )
    return tuple(tuple(row) for row in rows)


def time_all_reduces(node: Node) -> tuple[tuple[AllReduce, ...], tuple[str, ...]]:
    """Time every all-reduce that works here, with a process for each unit: a GPU, or one CPU of a group.

    Returns:
        The timings, and what kept others from working.

    Raises:
        RunError: If the processes end without a report.
    """
    plan = Plan(
        workers=len(node.units),
        device=node.kind,
        skip=tuple(topic for topic in TOPICS if topic not in TIMED),
    )
    cpus = [] if node.kind == "gpu" else [unit.cpus[0] for unit in node.units]
    with tempfile.TemporaryDirectory(prefix="scalestudy-topology-") as folder, only_on(cpus):
        report = check_here(Path(folder) / "check", plan)
    timings = (
        AllReduce(collective(row.collective).label, row.ranks, row.bytes, row.seconds)
        for row in report.bandwidth
    )
    notes = (
        f"{line.topic}, {line.where}: {line.seen}. {line.action}"
        for line in report.lines
        if line.status != "pass" and line.topic in ("ranks", *TIMED)
    )
    return tuple(timings), tuple(notes)
