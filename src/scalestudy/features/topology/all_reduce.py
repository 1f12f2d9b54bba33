"""The all-reduce of each collective over all units of this node, timed by message size."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from scalestudy.check.line import TOPICS
from scalestudy.check.local import check_here
from scalestudy.check.plan import Plan
from scalestudy.features.topology.units import Topology
from scalestudy.machine.cores import only_on
from scalestudy.measure.bandwidth import AllReduce
from scalestudy.strategies.collective_table import collective

TIMED = ("collectives", "bandwidth")


def all_reduce_here(
    topology: Topology, *, waiting: Callable[[], None] = lambda: None
) -> tuple[list[AllReduce], list[str]]:
    """Time every all-reduce that works here, with a process for each unit: a GPU, or one CPU of a group.

    Returns:
        The timings, and what kept others from working.

    Raises:
        RunError: If the processes end without a report.
    """
    device: Literal["cpu", "gpu"] = "gpu" if topology.kind == "gpu" else "cpu"
    plan = Plan(
        workers=len(topology.units),
        device=device,
        skip=tuple(topic for topic in TOPICS if topic not in TIMED),
    )
    cpus = [] if device == "gpu" else [unit.cpus[0] for unit in topology.units]
    with tempfile.TemporaryDirectory(prefix="scalestudy-topology-") as folder, only_on(cpus):
        report = check_here(Path(folder) / "check", plan, waiting=waiting)
    sums = [
        AllReduce(collective(row.collective).label, row.ranks, row.bytes, row.seconds)
        for row in report.bandwidth
    ]
    notes = [
        f"{line.topic}, {line.where}: {line.seen}. {line.action}"
        for line in report.lines
        if line.status != "pass" and line.topic in ("ranks", *TIMED)
    ]
    return sums, notes
