"""Bandwidth between each two units of a node, with real bytes moved."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scalestudy import modules
from scalestudy.errors import RunError
from scalestudy.features.topology.units import Topology
from scalestudy.machine.shadowing import library_path

Matrix = tuple[tuple[float | None, ...], ...]
OnProgress = Callable[[int, int], None]
SIZE = 32 * 2**20
"""Bytes of one transfer: more than caches and socket buffers hold, as a model's gradients are."""
BEFORE, REPEATS = 1, 5
LIMIT = 300.0
"""Seconds for all transfers between GPUs, the import of the framework included."""
CPU_METHOD = (
    "TCP over loopback between two processes, each pinned to one CPU of its unit: the way that RING and Gloo "
    "take within a node"
)
GPU_METHOD = "TensorFlow's copy from one GPU to another, over NVLink or PCIe as the driver allows"


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


def measure_pairs(topology: Topology, *, on_progress: OnProgress | None = None) -> Pairs:
    """Move bytes between each two units, one pair at a time.

    Raises:
        RunError: If an end ends, or does not answer in time.
    """
    if topology.kind == "gpu":
        names = [unit.uuid or unit.name.split()[-1] for unit in topology.units]
        return Pairs(_between_gpus(names), SIZE, GPU_METHOD)
    return Pairs(between_cpus([unit.cpus[0] for unit in topology.units], on_progress), SIZE, CPU_METHOD)


def between_cpus(cpus: Sequence[int], on_progress: OnProgress | None = None, *, size: int = SIZE) -> Matrix:
    """[from][to] bytes per second between processes pinned to these CPUs.

    Raises:
        RunError: If a process ends early.
    """
    count = len(cpus)
    rows: list[list[float | None]] = [[None] * count for _ in cpus]
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    with _ends(cpus) as ends:
        for done, (i, j) in enumerate(pairs, start=1):
            port = _ask(ends[j], f"receive {size} {BEFORE + REPEATS}", cpus[j])
            seconds = json.loads(_ask(ends[i], f"send {port} {size} {BEFORE + REPEATS}", cpus[i]))
            rows[i][j] = size / statistics.median(seconds[BEFORE:])
            if on_progress is not None:
                on_progress(done, len(pairs))
    return tuple(tuple(row) for row in rows)


@contextlib.contextmanager
def _ends(cpus: Sequence[int]) -> "Iterator[list[subprocess.Popen[str]]]":
    with contextlib.ExitStack() as held:
        ends = []
        for cpu in cpus:
            end = subprocess.Popen(
                [sys.executable, "-P", "-m", modules.STREAM, str(cpu)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            held.callback(_end, end)
            ends.append(end)
        yield ends


def _end(end: "subprocess.Popen[str]") -> None:
    end.kill()
    end.communicate()


def _ask(end: "subprocess.Popen[str]", line: str, cpu: int) -> str:
    assert end.stdin
    assert end.stdout
    try:
        end.stdin.write(line + "\n")
        end.stdin.flush()
        answer = end.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if not answer:
        end.kill()
        last = (end.communicate()[1].strip().splitlines() or ["it ended without a word"])[-1]
        raise RunError(
            f"a process pinned to CPU {cpu} to move bytes", last, "Measure on CPUs that are granted to you."
        )
    return answer.strip()


def _between_gpus(gpus: Sequence[str]) -> Matrix:
    """[from][to] bytes per second, measured by TensorFlow in a process of its own.

    Raises:
        RunError: If it fails, takes too long, or lists other GPUs.
    """
    command = [sys.executable, "-P", "-m", modules.DEVICE_PAIRS, "gpu", str(SIZE), ",".join(gpus)]
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
            "TensorFlow to copy between the GPUs", last, "--no-measure leaves measuring out."
        ) from error
    if len(rows) != len(gpus):  # a build without CUDA, MIG instances
        raise RunError(
            f"TensorFlow to list {len(gpus)} GPUs, to copy between them",
            str(len(rows)),
            "`scalestudy check` says why; --no-measure leaves measuring out.",
        )
    return tuple(tuple(row) for row in rows)
