"""A collective in a process of its own, which can be ended when it stalls."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from scalestudy.cluster.environment import own_gpus, process_environment
from scalestudy.cluster.placement import Placement
from scalestudy.features.check.mailbox import POLL, AttemptOutcome
from scalestudy.hardware.devices import Gpu
from scalestudy.measure.bandwidth import largest, repeats
from scalestudy.study.engines import Collective, EngineTraits

TAIL_LINES = 30
STEPS = {"": "joining", "joined": "the first sum", "summed": "timing", "timed": "timing", "built": "ending"}
"""What a process is at, by the last thing that it told."""


def among(placement: Placement, ranks: Sequence[int]) -> Placement:
    """The placement of a rank in a group of some of the ranks."""
    hosts = tuple(placement.hosts[rank] for rank in ranks)
    rank = ranks.index(placement.rank)
    local = [index for index, host in enumerate(hosts) if host == hosts[rank]]
    nodes = list(dict.fromkeys(hosts))
    return Placement(
        rank, len(ranks), local.index(rank), len(local), nodes.index(hosts[rank]), hosts,
        placement.source, placement.port,
    )  # fmt: skip


def environment(
    collective: Collective | None,
    engine: EngineTraits,
    placement: Placement,
    variables: Mapping[str, str],
    *,
    device: str,
    local_rank: int,
    gpus: Sequence[Gpu] = (),
) -> dict[str, str]:
    """Variables of a collective's process; without a collective it only tells how things were built.

    Args:
        collective: What is tried.
        engine: Whose framework the process imports.
        placement: Place in the group that takes part.
        variables: Those of the caller.
        device: "cpu" or "gpu".
        local_rank: Place of this rank's GPU among those that it sees: `Placement.gpu_place`.
        gpus: What NVML says that the caller may use.
    """
    shown: Sequence[str] | None = ()
    if device != "cpu":
        # Asked how it is built, the framework tells what it sees of all.
        shown = None if collective is None else own_gpus(variables, gpus, local_rank=local_rank)
    way = None if collective is None else collective.rendezvous
    changes = process_environment(variables, engine, gpus=shown, rendezvous=way, placement=placement)
    return changes.applied(variables) | {"PYTHONUNBUFFERED": "1"}


def errand(
    collective: Collective | None,
    placement: Placement,
    *,
    device: str,
    sizes: Sequence[int],
    events: Path,
    memory: int | None = None,
) -> dict[str, Any]:
    """What the process is to do (see the module that `EngineTraits.trial_module` names)."""
    source = placement.source
    if collective is not None and collective.rendezvous and collective.rendezvous.launcher:
        # By Gloo it meets at rank 0 even where mpirun started us; by MPI it does as mpirun says.
        source = collective.launcher or "check"
    return {
        "collective": None if collective is None else collective.name,
        "placement": asdict(replace(placement, source=source)),
        "device": device,
        "sizes": list(sizes),
        "largest": largest(device, memory),
        "repeats": [repeats(size, device) for size in sizes],
        "events": str(events),
    }


class Attempt:
    """One process at one errand. It stays after it is done, until all ranks are: then `end` it.

    It is in the caller's process group, so that whoever ends the caller's group ends it too.
    """

    def __init__(
        self, module: str, errand: Mapping[str, Any], variables: Mapping[str, str], log: Path
    ) -> None:
        self._events_file, self._log = Path(errand["events"]), log
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, json.dumps(errand)],
                env=dict(variables), stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def events(self) -> list[dict[str, Any]]:
        """What it has told so far."""
        try:
            lines = self._events_file.read_text().splitlines(keepends=True)
        except OSError:
            return []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def outcome(self, limit: float, final: str = "done") -> AttemptOutcome:
        """Wait until it is done, has failed, or has told nothing for `limit` seconds: then it is ended."""
        count, since = 0, time.monotonic()
        while True:
            code = self._process.poll()
            events = self.events()
            if events and events[-1]["step"] == final:
                return self._outcome("done", events)
            if code is not None:
                return self._outcome("failed", events)
            if len(events) > count:
                count, since = len(events), time.monotonic()
            elif time.monotonic() - since > limit:
                self.end()
                return self._outcome("stalled", events)
            time.sleep(POLL)

    def end(self) -> None:
        """Leave nothing of it behind."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()

    def _outcome(
        self, state: Literal["done", "failed", "stalled"], events: list[dict[str, Any]]
    ) -> AttemptOutcome:
        step = events[-1]["step"] if events else ""
        return AttemptOutcome(
            state=state,
            step=STEPS.get(step, step),
            seconds={event["bytes"]: event["seconds"] for event in events if event["step"] == "timed"},
            tail=[] if state == "done" else self._tail(),
        )

    def _tail(self) -> list[str]:
        try:
            lines = self._log.read_text(errors="replace").splitlines()
        except OSError:
            return []
        return [line.rstrip() for line in lines if line.strip()][-TAIL_LINES:]
