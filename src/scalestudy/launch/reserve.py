"""Reservation of ports, cores and GPUs for one run at a time, among all studies on this machine.

A reservation is a file lock held by the launcher, so it always ends with the launcher. The files belong to
this user alone, because other users could otherwise block them forever. Ports of another user's studies are
detected by their listeners; their cores are not detected.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

from scalestudy.cluster.private_files import SECRET, new_secret
from scalestudy.cluster.worker_environment import ASSIGNED, assignment
from scalestudy.config.point import Point
from scalestudy.hardware import cores as machine_cores
from scalestudy.hardware import devices
from scalestudy.hardware.cores import core_by_core, deal_cores
from scalestudy.hardware.devices import Gpu, visible_gpus
from scalestudy.hardware.private_network import private_network
from scalestudy.launch.launcher import Note, take_steps
from scalestudy.store.records import SHARED_CORES
from scalestudy.util.errors import RunError, UserError
from scalestudy.util.locks import Timeout, take
from scalestudy.util.private_folder import private_folder

PORTS = range(20_000, 32_000)
"""Ports below the range that Linux assigns by itself (from 32768)."""
TRY_EVERY = 0.5
"""Seconds between two attempts to reserve GPUs."""
NETWORK = "SCALESTUDY_NETWORK"
"""Id of the process whose network a worker enters; "" for that of this machine."""
SPARE_PORTS = 2
"""Ports besides one for each process: the parameter server and its coordinator have one each."""


@contextlib.contextmanager
def ports(count: int) -> Iterator[int]:
    """Reserve `count` consecutive ports without listeners and yield the first.

    Raises:
        RunError: If there are none.
    """
    # Launchers begin at different ports, so that they seldom try the same ones.
    start = PORTS.start + (os.getpid() * 64) % (len(PORTS) - count)
    order = [*range(start, PORTS.stop - count), *range(PORTS.start, start)]
    for first in order[::count]:
        with contextlib.ExitStack() as held:
            if _take_ports(held, range(first, first + count)):
                yield first
                return
    raise RunError(
        f"{count} free ports between {PORTS.start} and {PORTS.stop}",
        "none",
        "Stop the programs that listen there, or wait for other studies to finish.",
    )


def _take_ports(held: contextlib.ExitStack, numbers: Sequence[int]) -> bool:
    """Reserve ports until `held` exits; return whether all were free."""
    for port in numbers:
        # The lock is for other studies of this user, the probe for all other programs.
        if not (take_own(held, f"port-{port}") and _free(port)):
            return False
    return True


@contextlib.contextmanager
def cores(available: Sequence[int], count: int) -> Iterator[tuple[list[int], bool]]:
    """Reserve `count` cores, and yield them and whether they are exclusive to this run.

    If too few cores are available or free, cores are shared or repeated.
    """
    with contextlib.ExitStack() as held:
        own: list[int] = []
        for core in available:
            if len(own) < count and take_own(held, f"core-{core}"):
                own.append(core)
        if len(own) == count:
            yield own, True
            return
        others = [core for core in available if core not in own]
        pool = own + others
        yield [pool[index % len(pool)] for index in range(count)], False


def take_own(held: contextlib.ExitStack, name: str) -> bool:
    """Take the lock of this name until `held` exits; return whether it was free."""
    try:
        lock = take(private_folder() / name)
    except Timeout:
        return False
    if lock is not None:  # None: no locks on this file system; go on without one
        held.enter_context(lock)
    return True


def _free(port: int) -> bool:
    with socket.socket() as probe:
        # A port whose last connection is in TIME_WAIT can be bound: servers set this option, too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def run_cores(
    count: int,
    each: int,
    gpus: Sequence[Gpu] | None,
) -> contextlib.AbstractContextManager[tuple[list[int], bool]]:
    """Reserve `each` cores, near the GPUs, for `count` workers; also yields whether they are exclusive."""
    if gpus is None:
        return cores(machine_cores.granted(), count * each)
    near: list[Sequence[int]] = [gpu.cpus for gpu in gpus[:count]]
    near += [()] * (count - len(near))
    return cores_near(core_by_core(machine_cores.granted()), near, each)


@contextlib.contextmanager
def cores_near(
    available: Sequence[int],
    near: Sequence[Sequence[int]],
    each: int,
) -> Iterator[tuple[list[int], bool]]:
    """Reserve `each` cores for every GPU, in the order of the GPUs; also yields whether all are exclusive.

    Cores near a GPU are preferred. If another study holds those planned for it, other near cores are tried
    first, then any.
    """
    planned = deal_cores(available, near, each)
    dealt = {core for share in planned for core in share}
    with contextlib.ExitStack() as held:
        found: list[int] = []
        alone = True
        for share, around in zip(planned, near, strict=True):
            others = _by_preference(available, around, dealt)
            order = [*share, *(core for core in others if core not in share)]
            own, only = held.enter_context(cores(order, each))
            found += own
            alone = alone and only
        yield found, alone


def _by_preference(
    available: Sequence[int],
    around: Sequence[int],
    dealt: Collection[int],
) -> list[int]:
    """Return cores: those near a GPU first, and of both kinds first those that no other GPU is to have."""
    return sorted(available, key=lambda core: (core not in around, core in dealt))


def reserve_gpus(
    held: contextlib.ExitStack, point: Point
) -> Generator[Note, None, list[str]]:
    """Reserve a point's GPUs until `held` exits and return their UUIDs; none if it computes on CPUs.

    While other runs hold too many GPUs, it waits, and yields a note whenever the set of these GPUs changes.
    GPUs hidden by CUDA_VISIBLE_DEVICES are not used.
    """
    if point.launch.device == "cpu":
        return []
    count = point.workers
    if point.traits.one_device:
        count = 1
    available = usable_gpus()
    if len(available) < count:
        return []  # on CPUs, or the worker reports what is missing
    wanted = f"{count} GPUs at once"
    if count == 1:
        wanted = "a GPU"
    last: list[str] = []
    while True:
        # All or none: two runs that each hold a part would wait for each other.
        own, others = take_gpus(held, available, count)
        if own:
            return own
        if others != last:
            yield Note(
                f"{point.name} waits for {wanted}: other runs hold {', '.join(others)}."
            )
            last = others
        time.sleep(TRY_EVERY)


def usable_gpus() -> list[Gpu]:
    """Return the GPUs that workers may use, full ones first; none if they have no UUID to lock."""
    available = visible_gpus(os.environ)
    if not all(gpu.uuid for gpu in available):
        return []
    # CUDA shows a process no full GPU besides a MIG instance, and an instance is slower than a full GPU.
    return sorted(available, key=lambda gpu: gpu.uuid.startswith("MIG-"))


def await_gpus(
    held: contextlib.ExitStack,
    point: Point,
    on_note: Callable[[str], object],
) -> list[str]:
    """Reserve GPUs as `reserve_gpus` does; `on_note` is called with its notes."""
    return take_steps(reserve_gpus(held, point), lambda note: on_note(note.text))


def take_gpus(
    held: contextlib.ExitStack,
    available: Sequence[Gpu],
    count: int,
) -> tuple[list[str], list[str]]:
    """Try to reserve `count` GPUs; return their UUIDs, or none, and the UUIDs that others hold."""
    own: list[str] = []
    others: list[str] = []
    with contextlib.ExitStack() as attempt:
        for gpu in available:
            if len(own) == count:
                break
            if take_own(attempt, f"gpu-{gpu.uuid.replace('/', '-')}"):
                own.append(gpu.uuid)
            else:
                others.append(gpu.uuid)
        if len(own) < count:
            return [], others
        held.push(attempt.pop_all())
    return own, others


def secret_for(processes: int) -> dict[str, str]:
    """Return the variable with a new secret for the workers of a run; none for a single process."""
    if processes <= 1:
        return {}
    return {SECRET: new_secret()}


@contextlib.contextmanager
def private_run(processes: int, *, private: bool) -> Iterator[dict[str, str]]:
    """Create a secret and a network for the workers of a run here, and yield the variables that name them.

    TensorFlow listens on all interfaces and obeys any client, and Gloo does not authenticate. In a network of
    their own, no other account reaches them. There is none unless `private`, or where this machine allows
    none (`refuse_open_ports` has judged that).
    """
    if not private:
        yield secret_for(processes) | {NETWORK: ""}
        return
    with private_network() as network:
        yield secret_for(processes) | {NETWORK: str(network.holder or "")}


def wants_private(point: Point) -> bool:
    """Whether the workers of a point listen, on a machine whose other accounts must not reach them."""
    way = point.traits.rendezvous
    if way is None or point.launch.open_ports:
        return False
    # TensorFlow's workers also listen alone.
    return way.obeys or point.processes > 1


def refuse_open_ports(points: Sequence[Point]) -> Note | None:
    """Return a note if others could join the workers of points that run here, since they listen for anybody.

    Raises:
        UserError: If others could run code by that, and the study does not allow it.
    """
    listening = [point for point in points if wants_private(point)]
    if not listening:
        return None
    with private_network() as network:
        if network.holder is not None:
            return None
    obeying = set()
    for point in listening:
        if point.traits.rendezvous is not None and point.traits.rendezvous.obeys:
            obeying.add(point.implementation)
    if obeying:
        raise UserError(
            f"a network namespace for {' and '.join(sorted(obeying))}, whose workers obey whoever reaches them",
            f"none, since this machine allows none ({network.why_none})",
            "If nobody else reaches this machine, allow it: open_ports = true under [launch]. Otherwise take"
            " another strategy (`scalestudy docs reference/ports`).",
        )
    return Note(
        f"No network namespace on this machine ({network.why_none}): other accounts can reach the workers'"
        " ports, and disturb the run. open_ports = true under [launch] accepts that."
    )


@contextlib.contextmanager
def grant(
    point: Point, gpus: Sequence[str]
) -> Iterator[tuple[Point, int, list[int], Mapping[str, str]]]:
    """Reserve resources; yield the point (perhaps oversubscribed), its first port, cores and variables."""
    on_gpus = point.launch.device != "cpu" and devices.gpus() > 0
    shown: dict[str, str] = {}
    if gpus:
        shown = devices.showing(gpus) | assignment(gpus)
    count = point.workers
    if point.traits.one_device:
        count = 1
    near = None
    if on_gpus:
        near = devices.visible_gpus(os.environ | shown)
    with (
        ports(point.processes + SPARE_PORTS) as port,
        run_cores(count, point.launch.cpus_per_worker, near) as (cpus, alone),
        private_run(point.processes, private=wants_private(point)) as own,
    ):
        on_cpus = not on_gpus and point.launch.device != "gpu"
        if on_cpus and not alone and point.oversubscribed is None:
            point = point.on(oversubscribed=SHARED_CORES)
        way = point.traits.rendezvous
        if way and way.obeys and wants_private(point) and not own[NETWORK]:
            raise RunError(
                f"a network namespace for {point.implementation}, as there was one before",
                "none: this machine allows no more of them",
                "See user.max_net_namespaces (sysctl), or run the study again later.",
            )
        inherited = dict(os.environ)
        # Another launcher's promise, around this one, is none for this run.
        inherited.pop(ASSIGNED, None)
        yield point, port, cpus, inherited | own | shown
