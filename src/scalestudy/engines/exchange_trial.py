"""Test one collective in its own process: join, check a known sum, and time it by message size.

Run as `python -m MODULE REQUEST`, where MODULE belongs to an engine and calls `start`. REQUEST is JSON with
`placement`, `device` and:

- `collective`: a name in `EngineTraits.collectives`; null only reports how the libraries were built.
- `events`: file to which each step appends a JSON line.
- `gpus`: for a report on builds, the number of GPUs that the framework should see.
- `sizes` in bytes, ascending.

The caller sets the environment and ends this process: it closes standard input when all ranks are done, or
sends a signal if a rank stalls.
"""

import json
import os
import statistics
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.engines.group import Group, join
from scalestudy.hardware.no_gpus import Build, why_not_listed
from scalestudy.hardware.own_process import exit_at_once
from scalestudy.plugins.engines import EngineTraits, collective
from scalestudy.util.errors import RunError
from scalestudy.util.unused_packages import without_unused


def repeats(size: int) -> tuple[int, int]:
    """Return the number of calls to time and of sums chained in each; the same on every rank."""
    if size <= 1024 * 1024:
        return 3, 20
    return 1, 4


class ExchangeTrial(ABC):
    """A framework's sums and copies of arrays."""

    @abstractmethod
    def load(self) -> None:
        """Import the framework."""

    @abstractmethod
    def build(self) -> dict[str, Any]:
        """Return how the framework and its strategies' libraries were built, and the GPUs it can use."""

    @abstractmethod
    def total(
        self,
        group: Any,
        part: NDArray[np.float32],
        device: str,
    ) -> NDArray[np.float32]:
        """Return the sum over all ranks, computed on "cpu" or "gpu", as in training."""

    @abstractmethod
    def sums(
        self,
        group: Any,
        size: int,
        count: int,
        device: str,
    ) -> Callable[[], None]:
        """Return a function that sums `size` bytes of float32 zeros `count` times in sequence, and waits."""


def start(trial: ExchangeTrial, traits: EngineTraits) -> None:
    """Carry out the request in this process's arguments, then end the process."""
    try:
        code = _do(trial, traits, json.loads(sys.argv[1]))
    except Exception:
        traceback.print_exc()
        code = 1
    exit_at_once(code)


def _do(trial: ExchangeTrial, traits: EngineTraits, request: dict[str, Any]) -> int:
    started = time.monotonic()
    with without_unused(traits.unused):
        trial.load()
    events = Path(request["events"])

    def tell(**event: Any) -> None:
        # Closed after each line: the caller stops ranks that stall, and must see how far each is.
        with open(events, "a") as file:
            file.write(json.dumps(event) + "\n")

    if request["collective"] is None:
        built = trial.build() | {"seconds": time.monotonic() - started}
        if built["gpus"] < request["gpus"]:
            reason = None
            if built["cuda"]:
                reason = traits.why_no_gpus(os.environ)
            name = f"{traits.label} {built[traits.name]}"
            built["no_gpus"] = why_not_listed(Build(name, built["cuda"]), reason)
        tell(step="built", **built)
        return 0
    # JSON has made a list of the hosts.
    placement = Placement(
        **{**request["placement"], "hosts": tuple(request["placement"]["hosts"])}
    )
    kind = collective(request["collective"])
    device = request["device"]
    group = join(
        kind.strategy.name,
        placement,
        workers=placement.size,
        device=device,
        communication=kind.communication or "auto",
    ).group
    tell(step="joined")
    prove(trial, group, placement, device)
    tell(step="summed")
    for size in request["sizes"]:
        seconds = time_calls(trial, group, size, *repeats(size), device=device)
        tell(
            step="timed",
            bytes=size,
            seconds=seconds,
        )
    tell(step="done")
    sys.stdin.read()  # another rank may still read this rank's part of the last sum
    return 0


def prove(
    trial: ExchangeTrial,
    group: Group,
    placement: Placement,
    device: str,
) -> None:
    """Check a sum to which rank r contributes 1 at position r and 0 elsewhere.

    Raises:
        RunError: If a rank's part is missing or counted twice.
    """
    part = np.zeros(placement.size, np.float32)
    part[placement.rank] = 1
    total = trial.total(group, part, device)
    wrong = np.flatnonzero(total != 1)
    if wrong.size:
        raise RunError(
            "every rank to count once in the sum",
            f"rank {wrong[0]} counted {total[wrong[0]]:g} times",
            "Use another strategy here.",
        )


def time_calls(
    trial: ExchangeTrial,
    group: Group,
    size: int,
    calls: int,
    sums: int,
    *,
    device: str = "cpu",
) -> float:
    """Return the seconds of one sum of `size` bytes of float32: median over `calls` of `sums` chained sums.

    The first call, which connects and compiles, is not timed.
    """
    call = trial.sums(group, size, sums, device)
    seconds = []
    # One more than is timed: the first call connects and compiles.
    for _ in range(1 + calls):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:]) / sums
