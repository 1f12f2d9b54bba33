"""What is to be checked: `check.json`, which every rank reads, and the report that comes of it."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from scalestudy.features.check.report import REPORT_SCHEMA, Report, Topic
from scalestudy.hardware import cores
from scalestudy.launch.failures import TAIL_LINES
from scalestudy.launch.local import reserve
from scalestudy.launch.local.workers import POLL, WorkerProcesses, worker_commands
from scalestudy.measure.bandwidth import SIZES
from scalestudy.study.engines import DEFAULT, engine_traits
from scalestudy.study.point import Point
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.settings import StrictModel
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.files import write_atomically

PLAN_FILE, REPORT_FILE = "check.json", "report.json"


class WritableFolder(StrictModel):
    """A folder that the study will write to."""

    path: str
    """Absolute; may hold `~` and $VARIABLES of the node."""
    purpose: str
    bytes: int = 0
    """Space that will be needed there."""


class Plan(StrictModel):
    """What every rank is to look at. Seconds are limits: what takes longer counts as stalled."""

    schema_version: Literal[2] = 2
    engine: str = DEFAULT
    """The engine whose processes are tried."""
    workers: Annotated[int, Field(gt=0)]
    device: Literal["auto", "cpu", "gpu"] = "auto"
    gpus_per_node: int = 0
    """GPUs that the site promises on each node; 0 where it promises none."""
    cpus_per_worker: Annotated[int, Field(gt=0)] = 1
    needs: tuple[str, ...] | None = None
    """What the study's collectives must meet, as `Collective.needs` names it; None without a study: then
    each is a failure if it fails."""
    libraries: tuple[str, ...] = ()
    """Libraries that the study's strategies need beside the engine."""
    cache_bytes: int = 0
    """Bytes that a node's page cache holds once the whole data set was read."""
    folders: tuple[WritableFolder, ...] = ()
    skip: tuple[Topic, ...] = ()
    sizes: tuple[int, ...] = SIZES
    """Message sizes in bytes."""
    start_limit: float = 120.0
    """For a rank to appear, and for a framework to be imported for the first time."""
    limit: float = 60.0
    """Between two signs of life of a collective."""
    connect_limit: float = 5.0
    """For one connection."""
    slack: float = 15.0
    """For ranks to notice an assignment and to answer, beyond what it may take."""

    def wants(self, topic: Topic) -> bool:
        """Whether a topic is not left out."""
        return topic not in self.skip


def needs_of(points: Iterable[Point]) -> tuple[str, ...]:
    """What the collectives of points must meet: each one's communication, or what its processes meet by."""
    needs = dict.fromkeys(
        point.launch.communication
        if engine_traits(point.engine).communications(point.implementation)
        else point.traits.rendezvous.name
        for point in points
        if point.traits.rendezvous
    )
    return tuple(needs)


def libraries_of(points: Iterable[Point]) -> tuple[str, ...]:
    """Libraries that the strategies of points need beside the engine."""
    return tuple(dict.fromkeys(point.traits.library for point in points if point.traits.library))


def check_here(folder: Path, plan: Plan) -> Report:
    """Start the plan's workers on this machine, with files in an empty folder, and wait for their report.

    Raises:
        RunError: If they end without a report.
    """
    write_plan(folder, plan)
    size = plan.workers
    with (
        reserve.ports(size + 2) as port,
        reserve.cores(cores.granted(), size * plan.cpus_per_worker) as (cpus, _),
        reserve.private_run(size) as private,
    ):
        commands = worker_commands(RunFolder(folder), size, port, cpus, os.environ | private)
        with WorkerProcesses(commands) as workers:
            while not workers.ended(0) and not (folder / REPORT_FILE).exists():
                time.sleep(POLL)
    return read_report(folder)


def write_plan(folder: Path, plan: Plan) -> None:
    """Write the plan where the workers look for it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / PLAN_FILE, plan.model_dump_json(indent=1))


def read_plan(folder: Path) -> Plan:
    """The plan of a check's folder.

    Raises:
        UserError: If there is none, or if it is not whole.
    """
    try:
        return Plan.model_validate_json((folder / PLAN_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(
            f"a plan in {folder / PLAN_FILE}", str(error).splitlines()[0], "Start it with `scalestudy check`."
        ) from error


def read_report(folder: Path) -> Report:
    """The report of a check that has ended.

    Raises:
        RunError: If it left none.
    """
    file = folder / REPORT_FILE
    try:
        return Report.model_validate_json(file.read_bytes())
    except OSError:
        action = f"Look at the logs in {folder / 'logs'}."
        raise RunError(f"a report in {file}", _last_words(folder), action) from None
    except ValueError as error:
        raise RunError(
            f"a report of schema version {REPORT_SCHEMA} in {file}",
            str(error).splitlines()[0],
            "Another version of Scalestudy wrote it: check again.",
        ) from error


def _last_words(folder: Path) -> str:
    for name in ("rank-0.log", "job.log"):
        try:
            lines = (folder / "logs" / name).read_text(errors="replace").splitlines()
        except OSError:
            continue
        if tail := [line for line in lines if line.strip()][-TAIL_LINES:]:
            return f"none; the last of {name}: {tail[-1]}"
    return "none, and no logs"
