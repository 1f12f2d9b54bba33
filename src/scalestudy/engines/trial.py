"""One collective in a process of its own: joined, proved by a known sum, timed by message size.

`python -m MODULE ERRAND`, where the module of an engine calls `start`, and with ERRAND as JSON:
`collective` (a name of `EngineTraits.collectives`; null only says how things were built), `events` (file that
each step is told to, a JSON line each), `placement`, `device`, `sizes` (bytes, rising), `largest` (bytes that
fit this rank's device) and `repeats` (calls to time, sums chained in each; for each size). An errand of
`copies` (bytes) times copies between each two GPUs instead, and prints [from][to] bytes per second as JSON,
null on the diagonal. The caller sets the environment, and ends this process: by the end of its standard input
when all ranks are done, or by a signal when it stalls.
"""

import json
import os
import statistics
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Group, join
from scalestudy.measure.bandwidth import too_slow
from scalestudy.study.engines import EngineTraits, collective
from scalestudy.util.errors import RunError
from scalestudy.util.imports import without_unused

CALLS, COPIES = 5, 8


class ExchangeTrial(ABC):
    """How a framework sums and copies arrays."""

    @abstractmethod
    def load(self) -> None:
        """Import the framework."""

    @abstractmethod
    def build(self) -> dict[str, Any]:
        """What it and its strategies' libraries were built with, and the GPUs that it can use."""

    @abstractmethod
    def gpus(self) -> list[str]:
        """Names of its GPUs."""

    @abstractmethod
    def total(self, group: Any, part: NDArray[np.float32], device: str) -> tuple[NDArray[np.float32], str]:
        """The sum over all ranks, on "cpu" or "gpu" as in training, and the device that has it."""

    @abstractmethod
    def sums(self, group: Any, size: int, count: int, device: str) -> Callable[[], None]:
        """A call that sums `size` bytes of float32, zeros, `count` times one after another, and waits."""

    @abstractmethod
    def copies(self, source: str, target: str, size: int, count: int) -> Callable[[], None]:
        """A call that makes so many copies of `size` bytes from a GPU to another, and waits for them.

        Several in one call, as in nccl-tests.
        """


def start(trial: ExchangeTrial, traits: EngineTraits) -> None:
    """Do the errand of this process's arguments, and end it."""
    try:
        code = _do(trial, traits, json.loads(sys.argv[1]))
    except Exception:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of a framework may still wait for peers that have already left.
    os._exit(code)


def _do(trial: ExchangeTrial, traits: EngineTraits, errand: dict[str, Any]) -> int:
    started = time.monotonic()
    with without_unused(traits.unused):
        trial.load()
    if "copies" in errand:
        size, gpus = errand["copies"], trial.gpus()
        rates = [[None if a == b else size / copy_seconds(trial, a, b, size) for b in gpus] for a in gpus]
        print(json.dumps(rates))
        return 0
    events = Path(errand["events"])

    def tell(**event: Any) -> None:
        with open(events, "a") as file:
            file.write(json.dumps(event) + "\n")

    if errand["collective"] is None:
        tell(step="built", **trial.build(), seconds=time.monotonic() - started)
        return 0
    placement = Placement(**{**errand["placement"], "hosts": tuple(errand["placement"]["hosts"])})
    kind, device = collective(errand["collective"]), errand["device"]
    group = join(
        kind.strategy, placement, workers=placement.size, device=device,
        communication=kind.communication or "auto",
    ).group  # fmt: skip
    tell(step="joined")
    tell(step="summed", device=prove(trial, group, placement, device))
    seconds = 0.0
    for size, repeats in zip(errand["sizes"], errand["repeats"], strict=True):
        if any_rank(group, size > errand["largest"] or too_slow(seconds, *repeats)):
            break
        seconds = timed(trial, group, size, *repeats, device=device)
        tell(step="timed", bytes=size, seconds=seconds)
    prove(trial, group, placement, device)
    tell(step="done")
    sys.stdin.read()  # another rank's last sum may still read from this one
    return 0


def prove(trial: ExchangeTrial, group: Group, placement: Placement, device: str) -> str:
    """Sum on a device what each rank alone can bring: rank r gives 1 at position r.

    Returns:
        The device that has the sum.

    Raises:
        RunError: If a rank's part is missing or counted twice.
    """
    part = np.zeros(placement.size, np.float32)
    part[placement.rank] = 1
    total, place = trial.total(group, part, device)
    wrong = np.flatnonzero(total != 1)
    if wrong.size:
        raise RunError(
            "every rank to count once in the sum",
            f"rank {wrong[0]} counted {total[wrong[0]]:g} times",
            "Use another strategy here.",
        )
    return place


def any_rank(group: Group, yes: bool) -> bool:
    """Whether any rank says yes; the same on all."""
    return bool(group.host_sum(np.array([int(yes)], np.int64))[0])


def timed(
    trial: ExchangeTrial, group: Group, size: int, calls: int, sums: int, *, device: str = "cpu"
) -> float:
    """Seconds of one sum of `size` bytes of float32: of `sums` chained in a call, the median of `calls`.

    The first call, which connects and compiles, is not timed.
    """
    return _median(trial.sums(group, size, sums, device), calls) / sums


def copy_seconds(trial: ExchangeTrial, source: str, target: str, size: int) -> float:
    """Median seconds of a copy."""
    return _median(trial.copies(source, target, size, COPIES), CALLS) / COPIES


def _median(call: Callable[[], None], calls: int) -> float:
    seconds: Sequence[float] = []
    for _ in range(1 + calls):
        started = time.perf_counter()
        call()
        seconds = [*seconds, time.perf_counter() - started]
    return statistics.median(seconds[1:])
