"""A rank's part in a check: inspect its own machine, then run the trials that rank 0 assigns."""

import contextlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.config.point import Point
from scalestudy.features.check import host_checks
from scalestudy.features.check.check_report import (
    PLAN_FILE,
    REPORT_FILE,
    Line,
    Plan,
    Report,
    WritableFolder,
    read_report,
    write_plan,
)
from scalestudy.features.check.exchange import (
    POLL,
    Assignment,
    Exchange,
    Facts,
    RankAnswer,
    Trial,
    among,
    errand,
    trial_environment,
)
from scalestudy.features.check.trials import lead
from scalestudy.hardware import cores, devices
from scalestudy.hardware.no_gpus import Build, why_not_listed, why_unseen
from scalestudy.launch.hosts.launcher import reserved
from scalestudy.launch.local import reserve
from scalestudy.launch.local.workers import ProcessGroup, WorkerProcesses, started_in, worker_commands
from scalestudy.plugins.engines import collective, engine_traits
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import RunError
from scalestudy.util.files import write_atomically

PATIENCE = 1800.0
"""Seconds without an assignment after which a rank considers rank 0 lost."""


def check_here(
    folder: Path,
    plan: Plan,
    on_progress: Callable[[str], object] = lambda text: None,
    environment: str | None = None,
) -> Report:
    """Start the plan's ranks on this machine, with files in an empty folder, and wait for their report.

    `on_progress` is called with the current activity. `environment` is a virtual environment to start in.

    Raises:
        RunError: If the ranks end without a report.
    """
    write_plan(folder, plan)
    size = plan.workers
    with (
        reserve.ports(size + 2) as port,
        reserve.cores(cores.granted(), size * plan.cpus_per_worker) as (cpus, _),
        reserve.private_run(size) as private,
    ):
        commands = worker_commands(RunFolder(folder), size, port, cpus, os.environ | private)
        workers = WorkerProcesses([started_in(environment, command) for command in commands])
        return await_ranks(folder, workers, on_progress)


def check_on_hosts(folder: Path, plan: Plan, point: Point, on_progress: Callable[[str], object]) -> Report:
    """Start the plan's ranks on the hosts of a point, with files in a folder that they share."""
    write_plan(folder, plan)
    with contextlib.ExitStack() as held:
        _, processes = reserved(held, point, [os.path.join(folder, PLAN_FILE)])
        return await_ranks(folder, processes(RunFolder(folder)), on_progress)


def await_ranks(folder: Path, ranks: ProcessGroup, on_progress: Callable[[str], object]) -> Report:
    """Run a check's ranks until their report is there, and return it.

    Raises:
        RunError: If they end without a report.
    """
    with ranks:
        while not ranks.ended(0) and not (folder / REPORT_FILE).exists():
            on_progress(Exchange(folder).progress())
            time.sleep(POLL)
    return read_report(folder)


def run(path: Path, placement: Placement) -> int:
    """Do this process's part of the check in folder `path`; rank 0 writes the report.

    Returns:
        Exit code 0, even if lines of the report have failed, because the check itself completed.

    Raises:
        RunError: If rank 0 stops giving assignments, or a check has run in this folder before.
    """
    plan, exchange = Plan.model_validate_json((path / PLAN_FILE).read_bytes()), Exchange(path)
    if exchange.facts_path(placement.rank).exists():
        raise RunError(
            "a check that is started once",
            f"a second start in {path}",
            "A node may have failed, and the job was queued again. Start the check again.",
        )
    rank = _Rank(exchange, plan, placement)
    exchange.write_facts(rank.facts())
    try:
        if placement.rank == 0:
            threading.Thread(target=rank.follow, daemon=True).start()
            report = lead(exchange, plan, placement)
            write_atomically(path / REPORT_FILE, report.model_dump_json(indent=1))
        else:
            rank.follow()
    finally:
        rank.end_trial()
    return 0


class _Rank:
    def __init__(self, exchange: Exchange, plan: Plan, placement: Placement) -> None:
        self._exchange, self._plan, self._placement = exchange, plan, placement
        self._engine = engine_traits(plan.engine)
        self._trial: Trial | None = None
        self._gpus, self._uuids = devices.gpus(), devices.visible_uuids(os.environ)
        self._device = "gpu" if plan.device != "cpu" and self._gpus else "cpu"

    def facts(self) -> Facts:
        """Return what this rank finds on its own."""
        placement = self._placement
        return Facts(
            rank=placement.rank,
            host=socket.gethostname(),
            local_rank=placement.local_rank,
            cpus=tuple(cores.granted()),
            gpus=self._gpus,
            uuids=tuple(self._uuids),
            no_gpus=None if self._plan.device == "cpu" or self._gpus else why_unseen(),
            lines=tuple(self._host_lines()) if placement.local_rank == 0 else (),
        )

    def _host_lines(self) -> list[Line]:
        plan, here = self._plan, socket.gethostname()
        lines: list[Line] = []
        if plan.wants("versions"):
            versions = host_checks.read_versions(None)
            lines += host_checks.judge_versions(versions, here, self._engine, libraries=plan.libraries)
        if plan.wants("folders"):
            temporary = WritableFolder(path=tempfile.gettempdir(), purpose="temporary")
            lines += [host_checks.judge_folder(here, folder) for folder in (*plan.folders, temporary)]
        if plan.wants("network") and (line := host_checks.judge_infiniband(here)):
            lines.append(line)
        return lines

    def follow(self) -> None:
        """Carry out the assignments of rank 0 until the last."""
        number, since = 0, time.monotonic()
        while time.monotonic() - since < PATIENCE:
            assignment = self._exchange.assignment(number)
            if assignment is None:
                time.sleep(POLL)
                continue
            if assignment.kind == "end":
                return
            group = next((group for group in assignment.groups if self._placement.rank in group), None)
            if group is not None:
                self._exchange.answer(number, self._try(assignment, group))
            number, since = number + 1, time.monotonic()
        raise RunError(
            f"an assignment from rank 0 within {PATIENCE:.0f} s",
            f"none after assignment {number - 1}",
            "See rank 0's log, and check that all nodes share the check's folder.",
        )

    def _try(self, assignment: Assignment, group: tuple[int, ...]) -> RankAnswer:
        self.end_trial()  # an assignment follows only after all answers to the previous one
        rank, engine, gpus = self._placement.rank, self._engine, devices.visible_gpus(os.environ)
        way = None if assignment.kind == "build" else collective(assignment.collective)
        device = "cpu" if way is not None and way.device == "cpu" else self._device
        place = among(self._placement, group)
        what = errand(
            way,
            place,
            device=device,
            sizes=assignment.sizes,
            events=self._exchange.events(assignment.number, rank),
            memory=min((gpu.memory for gpu in gpus if gpu.memory), default=None),
        )
        local_rank = self._placement.gpu_place(self._gpus)
        variables = trial_environment(
            way, engine, place, os.environ, device=device, local_rank=local_rank, gpus=gpus
        )
        log = self._exchange.folder / "logs" / f"trial-{assignment.number}-rank-{rank}.log"
        self._trial = Trial(engine.trial_module, what, variables, log)
        answer = self._trial.answer(rank, assignment.limit)
        build = answer.build
        if (
            build
            and self._device == "gpu"
            and build["gpus"] < host_checks.shown_at_once(self._gpus, self._uuids)
        ):
            reason = engine.why_no_gpus(variables) if build["cuda"] else None
            name = f"{engine.label} {build[engine.name]}"
            build["no_gpus"] = why_not_listed(Build(name, build["cuda"]), reason)
        return answer

    def end_trial(self) -> None:
        """End the process of the current trial, if any."""
        if self._trial is not None:
            self._trial.end()
            self._trial = None
