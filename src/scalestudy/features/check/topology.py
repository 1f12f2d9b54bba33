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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from scalestudy.cluster.environment import process_environment
from scalestudy.features.check.plan import Plan, check_here
from scalestudy.features.check.report import TOPICS, AllReduce
from scalestudy.hardware import cores
from scalestudy.hardware.cores import only_on
from scalestudy.hardware.devices import Gpu, read_gpus, visible_gpus
from scalestudy.study.engines import DEFAULT, engine_traits
from scalestudy.util.errors import RunError

MOST_PROCESSES = 16
"""Processes that sum together at most where there are no GPUs."""
DESCRIBE_LIMIT, COPY_LIMIT = 30.0, 300.0
"""Seconds that a program may take to describe the node, and to copy between all GPUs."""
SIZE = 32 * 2**20
"""Bytes of one copy: more than caches hold, as a model's gradients are."""
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


def ranges(numbers: Collection[int]) -> str:
    """`0-3,8` for 0, 1, 2, 3 and 8, as the kernel writes sets of CPUs."""
    runs = groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0])
    ends = [[number for _, number in run] for _, run in runs]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ends)


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
    engine = engine_traits(DEFAULT)
    if engine.missing_software():
        return NodeBandwidth(copies, notes=(f"no {engine.label} here: no all-reduce was measured",))
    on_progress(f"Measuring all-reduces (starts {engine.label} in each process)")
    return NodeBandwidth(copies, *time_all_reduces(node))


def between_gpus(gpus: Sequence[str]) -> Matrix:
    """[from][to] bytes per second, measured by an engine in a process of its own.

    Raises:
        RunError: If it fails, takes too long, or lists other GPUs.
    """
    engine = engine_traits(DEFAULT)
    command = [sys.executable, "-P", "-m", engine.trial_module, json.dumps({"copies": SIZE})]
    variables = process_environment(os.environ, engine, gpus=gpus, quiet=True).applied(os.environ)
    wanted = f"{engine.label} to copy between {len(gpus)} GPUs"
    try:
        done = subprocess.run(
            command, env=variables,
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=COPY_LIMIT, check=False,
        )  # fmt: skip
        rows = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired as error:
        action = "Look at `nvidia-smi`: another process may hold the GPUs; --no-measure leaves measuring out."
        raise RunError(wanted, f"no answer within {COPY_LIMIT:.0f} s", action) from error
    except (IndexError, json.JSONDecodeError) as error:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise RunError(wanted, last, "--no-measure leaves measuring out.") from error
    if len(rows) != len(gpus):  # a build without CUDA, MIG instances
        action = "`scalestudy check` says why; --no-measure leaves measuring out."
        raise RunError(wanted, f"{len(rows)} that it lists", action)
    return tuple(tuple(row) for row in rows)


def time_all_reduces(node: Node) -> tuple[tuple[AllReduce, ...], tuple[str, ...]]:
    """Timings of every all-reduce that works here, and what kept others from working.

    There is a process for each GPU, or without any for each core.

    Raises:
        RunError: If the processes end without a report.
    """
    skip = tuple(topic for topic in TOPICS if topic not in TIMED)
    cpus = [] if node.gpus else node.cores[:MOST_PROCESSES]
    plan = Plan(workers=len(node.gpus or cpus), device="gpu" if node.gpus else "cpu", skip=skip)
    with tempfile.TemporaryDirectory(prefix="scalestudy-topology-") as folder, only_on(cpus):
        report = check_here(Path(folder) / "check", plan)
    notes = (
        f"{line.topic}, {line.where}: {line.seen}. {line.action}"
        for line in report.lines
        if line.status != "pass" and line.topic in ("ranks", *TIMED)
    )
    return report.bandwidth, tuple(notes)
