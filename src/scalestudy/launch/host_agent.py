"""`python -m scalestudy.launch.host_agent`: starts a run's workers on its host, and ends them.

It reserves cores and GPUs as a local run does. When its standard input is closed or silent, because the
launcher has ended or the network is broken, it ends its workers; if it is killed, the kernel ends them.
"""

import contextlib
import os
import select
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import scalestudy
from scalestudy.cluster.resolve import HOSTS
from scalestudy.cluster.worker_environment import assignment
from scalestudy.hardware import cores as machine_cores
from scalestudy.hardware import devices
from scalestudy.hardware.devices import Gpu
from scalestudy.launch.host_connection import (
    PREFIX,
    SILENCE,
    AllEnded,
    Answer,
    HostFacts,
    HostRequest,
    WorkerEnded,
    WorkersStart,
)
from scalestudy.launch.reserve import (
    NETWORK,
    private_run,
    run_cores,
    take_gpus,
    usable_gpus,
)
from scalestudy.launch.worker_processes import (
    POLL,
    Command,
    WorkerProcesses,
    share,
    started_in,
    worker_command,
)
from scalestudy.store.run_folder import RunFolder


class _Input:
    """Lines of standard input."""

    def __init__(self) -> None:
        self._rest = b""
        self._heard = time.monotonic()

    def lines(self, seconds: float) -> list[bytes] | None:
        """Return the lines that arrive within `seconds`; None if no more are to come."""
        ready, _, _ = select.select([0], [], [], seconds)
        if not ready:
            # The launcher sends empty lines: without any, it or the network is gone.
            if time.monotonic() - self._heard > SILENCE:
                return None
            return []
        data = os.read(0, 1 << 16)
        if not data:
            return None
        self._heard = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line for line in lines if line]

    def next(self) -> bytes | None:
        """Return the next line; None if no more are to come."""
        while True:
            lines = self.lines(POLL)
            if lines is None:
                return None
            if lines:
                return lines[0]


def main() -> int:
    """Answer a request, and start and watch workers if asked to."""
    lines = _Input()
    if (line := lines.next()) is None:
        return 1
    request = HostRequest.model_validate_json(line)
    with contextlib.ExitStack() as held:
        gpus, others = _take_gpus(held, request.gpus)
        shown: dict[str, str] = {}
        near = None
        if gpus:
            shown = devices.showing(gpus) | assignment(gpus)
            near = devices.visible_gpus(os.environ | shown)
        holders: Sequence[str] = others
        if gpus:
            # Others may hold some all the same: enough were left.
            holders = ()
        cpus, alone = held.enter_context(
            run_cores(request.workers, request.cpus_per_worker, near)
        )
        _say(
            HostFacts(
                host=socket.gethostname(),
                version=scalestudy.__version__,
                cores=len(machine_cores.granted()),
                gpus=tuple(gpu.capability for gpu in devices.visible_gpus(os.environ)),
                unseen=tuple(path for path in request.paths if not Path(path).exists()),
                alone=alone,
                holders=tuple(holders),
            )
        )
        if (line := lines.next()) is None:
            return 0
        start = WorkersStart.model_validate_json(line)
        one_host = len(set(start.hosts)) == 1
        network = private_run(len(start.ranks), private=start.private and one_host)
        # Only the network of it: the launcher has drawn one secret for all hosts.
        own = {NETWORK: held.enter_context(network)[NETWORK]}
        environment = {**os.environ, **start.variables, **own, **shown}
        watched: Sequence[int] = []
        if not gpus:
            watched = cpus or machine_cores.granted()
        with WorkerProcesses(
            _commands(start, cpus, environment),
            watched=watched,
        ) as workers:
            _watch(lines, start, workers)
        _say(AllEnded(share=workers.others()))
    return 0


def _take_gpus(held: contextlib.ExitStack, count: int) -> tuple[list[str], list[str]]:
    """Reserve GPUs; return their UUIDs, or none, and the UUIDs that other runs hold."""
    available: list[Gpu] = []
    if count:
        available = usable_gpus()
    if len(available) < count:
        return [], []  # the worker reports what is missing
    return take_gpus(held, available, count)


def _commands(
    start: WorkersStart,
    cpus: Sequence[int],
    environment: Mapping[str, str],
) -> list[Command]:
    run, size, count = RunFolder(Path(start.run)), len(start.hosts), len(start.ranks)
    nodes = list(dict.fromkeys(start.hosts))
    node = nodes.index(start.hosts[start.ranks[0]])
    # By torchrun's names, of which GROUP_RANK is the number of the node.
    place = {"LOCAL_WORLD_SIZE": str(count), "GROUP_RANK": str(node)}
    if count != size:
        place |= {"MASTER_ADDR": start.hosts[0], HOSTS: ",".join(start.hosts)}
    commands = []
    for local_rank, rank in enumerate(start.ranks):
        own = share(cpus, local_rank, count)
        command = worker_command(run, rank, size, start.port, own, environment)
        variables = {**command.environment, **place, "LOCAL_RANK": str(local_rank)}
        commands.append(
            started_in(start.environment, replace(command, environment=variables))
        )
    return commands


def _watch(lines: _Input, start: WorkersStart, workers: WorkerProcesses) -> None:
    """Tell which workers end, until all have ended or the input has."""
    reported = 0
    while True:
        more, running = lines.lines(POLL), workers.running()
        ends = list(workers.ends().items())
        for index, code in ends[reported:]:
            _say(WorkerEnded(rank=start.ranks[index], code=code))
        reported = len(ends)
        if more is None or not running:
            return


def _say(answer: Answer) -> None:
    # A prefix, since a host's shell start-up files may print, too. If the launcher has ended, the input tells.
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{PREFIX}{answer.model_dump_json()}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
