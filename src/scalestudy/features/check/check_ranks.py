"""The ranks of a check: start them here or on hosts, inspect their machine, and run the trials of rank 0."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.worker_environment import own_gpus, process_environment
from scalestudy.config.point import Point
from scalestudy.features.check import host_checks
from scalestudy.features.check.check_files import (
    PLAN_FILE,
    POLL,
    REPORT_FILE,
    Assignment,
    CheckPlan,
    Exchange,
    Facts,
    read_report,
    write_plan,
)
from scalestudy.features.check.check_report import Line, Report
from scalestudy.features.check.trials import lead
from scalestudy.hardware import cores, devices
from scalestudy.hardware.devices import Gpu
from scalestudy.hardware.no_gpus import why_unseen
from scalestudy.launch import reserve
from scalestudy.launch.hosts import reserve_devices
from scalestudy.launch.worker_processes import (
    ProcessGroup,
    WorkerProcesses,
    started_in,
    worker_commands,
)
from scalestudy.plugins.engines import (
    Collective,
    EngineTraits,
    collective,
    engine_traits,
)
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import RunError
from scalestudy.util.files import without_following, write_atomically

PATIENCE = 1800.0
"""Seconds without an assignment after which a rank considers rank 0 lost."""


def check_here(
    folder: Path,
    plan: CheckPlan,
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
        # A network of their own, as the processes of a local run have.
        reserve.private_run(size, private=size > 1) as private,
    ):
        commands = worker_commands(
            RunFolder(folder),
            size,
            port,
            cpus,
            os.environ | private,
        )
        started = [started_in(environment, command) for command in commands]
        return await_ranks(folder, WorkerProcesses(started), on_progress)


def check_on_hosts(
    folder: Path,
    plan: CheckPlan,
    point: Point,
    on_progress: Callable[[str], object],
) -> Report:
    """Start the plan's ranks on the hosts of a point, with files in a folder that they share."""
    write_plan(folder, plan)
    with contextlib.ExitStack() as held:
        _, processes = reserve_devices(held, point, [os.path.join(folder, PLAN_FILE)])
        return await_ranks(folder, processes(RunFolder(folder)), on_progress)


def await_ranks(
    folder: Path,
    ranks: ProcessGroup,
    on_progress: Callable[[str], object],
) -> Report:
    """Run a check's ranks until their report is there, and return it.

    Raises:
        RunError: If they end without a report.
    """
    with ranks:
        # Rank 0 writes the report: without it, there is nothing to wait for.
        while not ranks.ended(0) and not (folder / REPORT_FILE).exists():
            on_progress(Exchange(folder).progress())
            time.sleep(POLL)
    return read_report(folder)


def check_rank(path: Path, placement: Placement) -> int:
    """Do this process's part of the check in folder `path`; rank 0 writes the report.

    Returns:
        Exit code 0, even if lines of the report have failed, because the check itself completed.

    Raises:
        RunError: If rank 0 stops giving assignments, or a check has run in this folder before.
    """
    plan = CheckPlan.model_validate_json((path / PLAN_FILE).read_bytes())
    exchange = Exchange(path)
    # Slurm requeues a job after the loss of a node, and the ranks would read the assignments of its first start.
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
            # Rank 0 takes part in the trials that it leads.
            threading.Thread(target=rank.follow, daemon=True).start()
            report = lead(exchange, plan, placement)
            write_atomically(path / REPORT_FILE, report.model_dump_json(indent=1))
        else:
            rank.follow()
    finally:
        rank.end_trial()
    return 0


class _Rank:
    """One process of a check. Each trial runs in a child process, which can be ended if it stalls.

    A child that is done stays until the next assignment, since other ranks may still read from it. It belongs
    to the process group of this process, so that a signal to the group ends it too.
    """

    def __init__(
        self,
        exchange: Exchange,
        plan: CheckPlan,
        placement: Placement,
    ) -> None:
        self._exchange = exchange
        self._plan = plan
        self._placement = placement
        self._engine = engine_traits(plan.engine)
        self._trial: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._gpus = devices.gpus()
        self._uuids = devices.visible_uuids(os.environ)
        self._device = "cpu"
        if plan.device != "cpu" and self._gpus:
            self._device = "gpu"

    def facts(self) -> Facts:
        """Return what this rank finds on its own."""
        placement = self._placement
        no_gpus = None
        if self._plan.device != "cpu" and not self._gpus:
            no_gpus = why_unseen()
        lines: Sequence[Line] = ()
        # One rank of each host speaks for it.
        if placement.local_rank == 0:
            lines = self._host_lines()
        return Facts(
            rank=placement.rank,
            host=socket.gethostname(),
            local_rank=placement.local_rank,
            gpus=self._gpus,
            uuids=tuple(self._uuids),
            no_gpus=no_gpus,
            lines=tuple(lines),
        )

    def _host_lines(self) -> list[Line]:
        plan = self._plan
        here = socket.gethostname()
        lines: list[Line] = []
        if plan.wants("versions"):
            versions = host_checks.read_versions(None)
            lines += host_checks.judge_versions(
                versions,
                here,
                self._engine,
                libraries=plan.libraries,
            )
        if plan.wants("folders"):
            # Each node has a temporary folder of its own.
            folders = plan.folders | {tempfile.gettempdir(): "temporary"}
            for folder, purpose in folders.items():
                lines.append(host_checks.judge_folder(here, folder, purpose))
        return lines

    def follow(self) -> None:
        """Carry out the assignments of rank 0 until the last."""
        since = time.monotonic()
        while time.monotonic() - since < PATIENCE:
            assignment = self._exchange.assignment(self._number)
            if assignment is None:
                self._report_end()
                time.sleep(POLL)
                continue
            # An assignment follows only after the previous trial has ended everywhere.
            self.end_trial()
            if assignment.last:
                return
            self._start(assignment)
            self._number += 1
            since = time.monotonic()
        raise RunError(
            f"an assignment from rank 0 within {PATIENCE:.0f} s",
            f"none after assignment {self._number - 1}",
            "See rank 0's log, and check that all nodes share the check's folder.",
        )

    def _start(self, assignment: Assignment) -> None:
        number = assignment.number
        rank = self._placement.rank
        gpus = devices.visible_gpus(os.environ)
        way: Collective | None = None
        device = self._device
        if assignment.collective:
            way = collective(assignment.collective)
            if way.device == "cpu":
                device = "cpu"
        sizes: Sequence[int] = ()
        if self._plan.wants("bandwidth"):
            sizes = self._plan.sizes
        what = trial_task(
            way,
            self._placement,
            device=device,
            sizes=sizes,
            events=self._exchange.events_path(number, rank),
        )
        # Without a collective, the trial reports how many of these GPUs its framework sees.
        if way is None:
            what["gpus"] = 0
            if device == "gpu":
                what["gpus"] = host_checks.shown_at_once(self._gpus, self._uuids)
        variables = trial_environment(
            way,
            self._engine,
            self._placement,
            os.environ,
            device=device,
            local_rank=self._placement.gpu_place(self._gpus),
            gpus=gpus,
        )
        self._exchange.append_event(number, rank, step="begun")
        log = self._exchange.log(number, rank)
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab", opener=without_following) as output:
            # -P keeps the current folder, whose modules could take the place of ours, out of `sys.path`.
            self._trial = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    self._engine.trial_module,
                    json.dumps(what),
                ],
                env=variables,
                # It ends when this is closed: another rank may still read its part of the last sum.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _report_end(self) -> None:
        """Report the exit code of the trial once it has ended."""
        if self._trial is None:
            return
        code = self._trial.poll()
        if code is None:
            return
        number = self._number - 1
        self.end_trial()
        self._exchange.append_event(
            number,
            self._placement.rank,
            step="ended",
            code=code,
        )

    def end_trial(self) -> None:
        """Kill the process of the current trial, if any, and wait for it."""
        trial = self._trial
        self._trial = None
        if trial is not None:
            trial.kill()
            with contextlib.suppress(BrokenPipeError):
                trial.communicate()


def trial_environment(
    way: Collective | None,
    engine: EngineTraits,
    placement: Placement,
    variables: Mapping[str, str],
    *,
    device: str,
    local_rank: int,
    gpus: Sequence[Gpu] = (),
) -> dict[str, str]:
    """Return the variables of a trial's process. Without a collective, the trial only reports the build.

    `local_rank` is the index of this rank's GPU among the visible ones, and `gpus` the GPUs that it may use
    according to NVML.
    """
    shown: Sequence[str] | None = ()
    if device != "cpu":
        # For its build report, the framework must see all GPUs.
        if way is None:
            shown = None
        else:
            shown = own_gpus(variables, gpus, local_rank=local_rank)
    rendezvous = None
    if way is not None:
        rendezvous = way.rendezvous
    changes = process_environment(
        variables,
        engine,
        gpus=shown,
        rendezvous=rendezvous,
        placement=placement,
    )
    return changes.applied(variables) | {"PYTHONUNBUFFERED": "1"}


def trial_task(
    way: Collective | None,
    placement: Placement,
    *,
    device: str,
    sizes: Sequence[int],
    events: Path,
) -> dict[str, Any]:
    """Return the task of a trial's process; see the module `EngineTraits.trial_module`."""
    name = None
    source = placement.source
    if way is not None:
        name = way.name
        if way.rendezvous and way.rendezvous.secret:
            # With Gloo, Horovod's processes meet at rank 0 even under mpirun; with MPI, mpirun connects them.
            source = way.launcher or "check"
    return {
        "collective": name,
        "placement": asdict(replace(placement, source=source)),
        "device": device,
        "sizes": list(sizes),
        "events": str(events),
    }
