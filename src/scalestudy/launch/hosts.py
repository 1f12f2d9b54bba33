"""The launcher for several machines without a queue, which reaches them by SSH."""

import contextlib
import functools
import re
import subprocess
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import scalestudy
from scalestudy.config.expand import expand
from scalestudy.config.file import Study
from scalestudy.config.machine import Machine
from scalestudy.config.point import Point
from scalestudy.launch.host_connection import (
    SSH,
    Connection,
    HostFacts,
    HostProcesses,
    HostRequest,
    WorkersStart,
    connect,
    is_here,
    passed_on,
)
from scalestudy.launch.launcher import Note, Options
from scalestudy.launch.local import LocalLauncher
from scalestudy.launch.local_run import Reserved
from scalestudy.launch.reserve import (
    SPARE_PORTS,
    ports,
    secret_for,
    wants_private,
)
from scalestudy.store.records import SHARED_CORES
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError, UserError

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.@-]*"  # never an option of ssh
_COUNT = "([1-9][0-9]{0,4})"
_ITEM = re.compile(rf"({_NAME})(?::{_COUNT})?", re.ASCII)


@dataclass(frozen=True)
class ListedHost:
    """A host as listed: its name for ssh, and its largest number of workers; None if the list has none."""

    name: str
    slots: int | None = None


def parse_hosts(hosts: Sequence[str] | None, where: str = "") -> tuple[ListedHost, ...]:
    """Return the hosts of `launch.hosts`.

    Raises:
        UserError: If there are none, or a host is malformed or listed twice. `where` is the line of the study
            file, for the message.
    """
    if not hosts:
        raise UserError(
            'hosts beside launch.on = "hosts"',
            f"none{where}",
            'Write hosts = ["a", "b:2"] under [launch].',
        )
    found = []
    for text in hosts:
        match = _ITEM.fullmatch(text)
        if match is None:
            raise UserError(
                "a host, such as lab2, me@lab2 or lab2:4",
                f"{text!r}{where}",
                "Correct it.",
            )
        slots = None
        if match[2]:
            slots = int(match[2])
        found.append(ListedHost(match[1], slots))
    names = [host.name for host in found]
    # A host that is listed twice would be asked to reserve its cores twice.
    for name in names:
        if names.count(name) > 1:
            action = "Give its number of workers instead, as lab2:4."
            raise UserError("each host once", f"{name} twice{where}", action)
    return tuple(found)


def balance_processes(
    slots: Sequence[int],
    processes: int,
    *,
    one_host: bool,
) -> list[int]:
    """Return the number of processes of each host: on one, or balanced over the first hosts that suffice.

    Six processes on hosts with 4 slots each are 3 and 3, on hosts with 4 and 2 slots 4 and 2.
    """
    counts = [0] * len(slots)
    if one_host:
        counts[_host_for(slots, processes)] = processes
        return counts
    # At least two: what fits on the smallest host has `one_host`.
    used = 2
    while used < len(slots) and sum(slots[:used]) < processes:
        used += 1
    used = min(used, len(slots))
    for _ in range(processes):
        room = [index for index in range(used) if counts[index] < slots[index]]
        emptiest = min(room or range(used), key=lambda index: counts[index])
        counts[emptiest] += 1
    return counts


def _host_for(slots: Sequence[int], processes: int) -> int:
    """Return the index of the first host that all processes fit; if there is none, of the largest."""
    for index, most in enumerate(slots):
        if most >= processes:
            return index
    return slots.index(max(slots))


@dataclass(frozen=True)
class Hosts:
    """The hosts of a study, all of which have answered."""

    listed: tuple[ListedHost, ...]
    facts: tuple[HostFacts, ...]

    def machine(self) -> Machine:
        """Return the resources of a host, those of the smallest; the list may allow more workers."""
        given = [host.slots for host in self.listed if host.slots is not None]
        tasks_per_node = None
        if len(given) == len(self.listed):
            tasks_per_node = max(given)
        capabilities = []
        for facts in self.facts:
            # A driver that does not answer leaves a capability unknown.
            capabilities += [known for known in facts.gpus if known]
        return Machine(
            gpus=min(len(facts.gpus) for facts in self.facts),
            cores=min(facts.cores for facts in self.facts),
            cluster=True,
            tasks_per_node=tasks_per_node,
            capability=min(capabilities, default=None),
        )

    def slots(self, cpus_per_worker: int, device: str) -> list[int]:
        """Return the largest number of workers of each host."""
        on_gpus = self.machine().device(device) == "gpu"
        slots = []
        for host, facts in zip(self.listed, self.facts, strict=True):
            if host.slots:
                slots.append(host.slots)
            elif on_gpus:
                slots.append(len(facts.gpus))
            else:
                slots.append(max(1, facts.cores // cpus_per_worker))
        return slots

    def ranks(self, point: Point) -> list[tuple[str, tuple[int, ...]]]:
        """Return the hosts that a point uses, each with its ranks, in blocks."""
        launch, processes = point.launch, point.processes
        one = (
            processes == 1
            or self.machine().nodes(processes, launch.cpus_per_worker, launch.device)
            == 1
        )
        counts = balance_processes(
            self.slots(launch.cpus_per_worker, launch.device),
            processes,
            one_host=one,
        )
        found, first = [], 0
        for host, count in zip(self.listed, counts, strict=True):
            if count:
                found.append((host.name, tuple(range(first, first + count))))
            first += count
        return found


@functools.cache
def ask_hosts(hosts: tuple[ListedHost, ...]) -> Hosts:
    """Ask all hosts what they have, once in this process.

    Raises:
        UserError: If a host cannot be reached, or has no Scalestudy or another version.
    """
    with contextlib.ExitStack() as held:
        facts = []
        for _, answer in connect(held, [(host.name, HostRequest()) for host in hosts]):
            if isinstance(answer, RunError):
                raise UserError(answer.expected, answer.received, answer.action)
            facts.append(answer)
    for host, answer in zip(hosts, facts, strict=True):
        # Versions may differ in what launcher, agent and worker tell each other.
        if answer.version != scalestudy.__version__:
            raise UserError(
                f"Scalestudy {scalestudy.__version__} on {host.name}, as here",
                answer.version,
                "Install the same version on every host.",
            )
    return Hosts(hosts, tuple(facts))


class HostsLauncher(LocalLauncher):
    """Runs points on several machines, one after another, within this process's lifetime."""

    title = "several hosts"

    @staticmethod
    def guard(points: Sequence[Point]) -> None:
        """Refuse no point: the processes of several hosts need the network between them."""

    def points(self, study: Study, options: Options) -> list[Point]:
        """Return the points of a study, expanded for its hosts.

        Raises:
            UserError: If a host does not answer, or a point is impossible there.
        """
        hosts = hosts_of(study)
        machine = hosts.machine()
        points = expand(
            study,
            gpus=machine.gpus,
            cores=machine.cores,
            cluster=True,
            tasks_per_node=machine.tasks_per_node,
            capability=machine.capability,
        )
        for point in points:
            most = sum(hosts.slots(point.launch.cpus_per_worker, point.launch.device))
            if point.processes > most:
                raise UserError(
                    f"hosts for the {point.processes} processes of {point.name}",
                    f"room for {most}{study.place.of('launch.hosts', 'sweep.workers')}",
                    "Add hosts, allow more workers on one (lab2:4), or use fewer workers.",
                )
        return points

    @staticmethod
    def reserve(
        held: contextlib.ExitStack,
        folder: StudyFolder,
        point: Point,
    ) -> Generator[Note, None, Reserved]:
        """Reserve cores and GPUs on the hosts of a point; see `reserve_devices`."""
        # Nothing to note, but it must be a generator like the reservation on this machine.
        yield from ()
        files = point.needed_files()
        paths = (
            str(folder.path.absolute() / "study.json"),
            files.prepared,
            files.split,
        )
        return reserve_devices(held, point, paths)


def reserve_devices(
    held: contextlib.ExitStack,
    point: Point,
    paths: Sequence[str],
) -> Reserved:
    """Connect to the hosts of a point and reserve cores and GPUs there, until `held` exits.

    Raises:
        RunError: If a host does not answer, does not see these paths, or others hold its GPUs.
    """
    hosts = ask_hosts(parse_hosts(point.launch.hosts))
    blocks = hosts.ranks(point)
    requests = []
    for host, ranks in blocks:
        requests.append((host, _request(point, hosts, ranks, tuple(paths))))
    starts: list[tuple[Connection, tuple[int, ...]]] = []
    names: list[str] = []
    for (connection, answer), (host, ranks) in zip(
        connect(held, requests),
        blocks,
        strict=True,
    ):
        facts = _usable(host, answer)
        starts.append((connection, ranks))
        names += [address_of(host, facts)] * len(ranks)
        if not facts.alone and not facts.gpus and point.oversubscribed is None:
            point = point.on(oversubscribed=SHARED_CORES)
    port = held.enter_context(ports(point.processes + SPARE_PORTS))
    variables = passed_on() | secret_for(point.processes)

    def processes(run: RunFolder) -> HostProcesses:
        every = WorkersStart(
            run=str(run.path.absolute()),
            ranks=(),
            hosts=tuple(names),
            port=port,
            environment=point.environment,
            private=wants_private(point),
            variables=variables,
        )
        requests = []
        for connection, ranks in starts:
            requests.append((connection, every.model_copy(update={"ranks": ranks})))
        return HostProcesses(requests)

    return point, processes


def _request(
    point: Point,
    hosts: Hosts,
    ranks: Sequence[int],
    paths: tuple[str, ...],
) -> HostRequest:
    """Return what to reserve on the host of these ranks, as a local run would for all of its workers."""
    workers = len(ranks)
    if point.processes == 1:
        # One process computes on the devices of all its workers.
        workers = point.workers
        if point.traits.one_device:
            workers = 1
    gpus = workers
    if hosts.machine().device(point.launch.device) == "cpu":
        gpus = 0
    return HostRequest(
        paths=paths,
        workers=workers,
        cpus_per_worker=point.launch.cpus_per_worker,
        gpus=gpus,
    )


def _usable(host: str, answer: HostFacts | RunError) -> HostFacts:
    if isinstance(answer, RunError):
        raise answer
    if answer.unseen:
        raise RunError(
            f"a file system that all hosts share, for {answer.unseen[0]}",
            f"no such file on {host}",
            "Put the study, its data and the cache (data.cache) where all hosts see them.",
        )
    if answer.holders:
        raise RunError(
            f"free GPUs on {host}",
            f"other runs hold {', '.join(answer.holders)}",
            "Run the study again later.",
        )
    return answer


def address_of(host: str, facts: HostFacts) -> str:
    """Return the name by which other hosts know a host: without the user and aliases of ssh's settings."""
    if is_here(host):
        return facts.host
    # -G prints the settings that would be used, and connects to nothing.
    done = subprocess.run(
        [SSH[0], "-G", host],
        capture_output=True,
        text=True,
        check=False,
    )
    settings = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        settings[key] = value
    # Where ssh gives no answer, the name as it is listed, without the user.
    return settings.get("hostname", host.rpartition("@")[2])


def hosts_of(study: Study) -> Hosts:
    """Return the hosts of a study, all of which have answered; see `ask_hosts`."""
    return ask_hosts(
        parse_hosts(study.launch.hosts, study.place.of("launch.hosts", "launch.on"))
    )
