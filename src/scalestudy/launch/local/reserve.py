"""Ports and cores that one run at a time may call its own, among all studies of this machine.

A reservation is a lock on a file, held by the launcher: it ends with the launcher, however that ends.
The files are this user's alone. What another user could lock, he could keep from us for ever; his studies
are seen at the ports, where somebody listens, and not at the cores.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence

from scalestudy.cluster.gpu_assignment import ASSIGNED, assignment
from scalestudy.cluster.secret import SECRET, new_secret
from scalestudy.hardware import cores as machine_cores
from scalestudy.hardware import devices
from scalestudy.hardware.cores import core_by_core, shares
from scalestudy.hardware.devices import Gpu, lendable_gpus, visible_gpus
from scalestudy.hardware.network_namespace import READY
from scalestudy.launch.base import Note
from scalestudy.study.point import Point
from scalestudy.util import modules
from scalestudy.util.errors import RunError
from scalestudy.util.locks import Timeout, take
from scalestudy.util.private_dir import private_folder

PORTS = range(20_000, 32_000)
"""Below the ports that Linux hands out by itself (from 32768)."""


@contextlib.contextmanager
def ports(count: int) -> Iterator[int]:
    """The first of `count` consecutive ports that nobody listens at and no other run has reserved.

    Raises:
        RunError: If there are none.
    """
    start = PORTS.start + (os.getpid() * 64) % (len(PORTS) - count)  # spread launchers out
    order = [*range(start, PORTS.stop - count), *range(PORTS.start, start)]
    for first in order[::count]:
        with contextlib.ExitStack() as held:
            if all(take_own(held, f"port-{port}") and _free(port) for port in range(first, first + count)):
                yield first
                return
    raise RunError(
        f"{count} free ports between {PORTS.start} and {PORTS.stop}",
        "none",
        "Stop the programs that listen there, or wait for other studies to finish.",
    )


@contextlib.contextmanager
def cores(available: Sequence[int], count: int) -> Iterator[tuple[list[int], bool]]:
    """`count` cores, unused by other studies where possible, and whether they are this run's alone.

    With fewer cores than asked for, or with all of them in use, cores are handed out twice.
    """
    with contextlib.ExitStack() as held:
        own: list[int] = []
        for core in available:
            if len(own) < count and take_own(held, f"core-{core}"):
                own.append(core)
        if len(own) == count:
            yield own, True
        else:
            pool = own + [core for core in available if core not in own]
            yield [pool[index % len(pool)] for index in range(count)], False


def take_own(held: contextlib.ExitStack, name: str) -> bool:
    """Whether the lock of this name was free; then it is ours until `held` ends."""
    try:
        lock = take(private_folder() / name)
    except Timeout:
        return False
    if lock is not None:  # a file system without locks keeps two studies of one user from nothing
        held.enter_context(lock)
    return True


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def run_cores(
    point: Point, gpus: Sequence[Gpu] | None
) -> contextlib.AbstractContextManager[tuple[list[int], bool]]:
    """The cores of all workers of a point, near the GPUs that they see, and whether they are its alone."""
    count, each = 1 if point.traits.one_device else point.places, point.launch.cpus_per_worker
    if gpus is None:
        return cores(machine_cores.granted(), count * each)
    near = [gpus[index].cpus if index < len(gpus) else () for index in range(count)]
    return cores_near(core_by_core(machine_cores.granted()), near, each)


@contextlib.contextmanager
def cores_near(
    available: Sequence[int], near: Sequence[Sequence[int]], each: int
) -> Iterator[tuple[list[int], bool]]:
    """`each` cores for every GPU, the first one's first, and whether all are this run's alone.

    A GPU's own are near it; where another study has those, others, near it if there are any.
    """
    planned = shares(available, near, each)
    dealt = {core for share in planned for core in share}
    with contextlib.ExitStack() as held:
        found: list[int] = []
        alone = True
        for share, around in zip(planned, near, strict=True):
            others = [core for core in available if core not in share]
            others.sort(key=lambda core, around=around: (core not in around, core in dealt))  # type: ignore[misc]
            own, only = held.enter_context(cores([*share, *others], each))
            found += own
            alone = alone and only
        yield found, alone


TRY_EVERY = 0.5
"""Seconds between two tries."""


def reserved_gpus(
    held: contextlib.ExitStack, point: Point, variables: Mapping[str, str] = os.environ
) -> Generator[Note, None, list[str]]:
    """UUIDs of a point's own GPUs until `held` ends; none if it computes on CPUs.

    While others hold too many of them it waits, and tells which whenever that changes. What
    CUDA_VISIBLE_DEVICES of `variables` hides is not taken.
    """
    count = 1 if point.traits.one_device else point.workers
    look = lendable_gpus if count == 1 else visible_gpus
    available = [] if point.launch.device == "cpu" else look(variables)
    if len(available) < count or not all(gpu.uuid for gpu in available):
        return []  # on CPUs, or the worker will say what is missing; without UUIDs there is nothing to lock
    # CUDA shows a process no whole GPU beside a MIG instance, and an instance is slower than a GPU.
    available.sort(key=lambda gpu: gpu.uuid.startswith("MIG-"))
    last = ""
    while True:
        own, others = _taken(held, available, count)
        if own:
            return own
        wanted = "a GPU" if count == 1 else f"{count} GPUs at once"
        if (text := f"{point.name} waits for {wanted}: other runs hold {', '.join(others)}.") != last:
            yield Note(text)
            last = text
        time.sleep(TRY_EVERY)


def _taken(held: contextlib.ExitStack, available: Sequence[Gpu], count: int) -> tuple[list[str], list[str]]:
    """UUIDs of so many GPUs that are ours now, or none; and of those that others have."""
    own: list[str] = []
    others: list[str] = []
    with contextlib.ExitStack() as attempt:
        for gpu in available:
            if len(own) < count:
                free = take_own(attempt, f"gpu-{gpu.uuid.replace('/', '-')}")
                (own if free else others).append(gpu.uuid)
        if len(own) < count:
            return [], others
        held.push(attempt.pop_all())
    return own, others


NETWORK = "SCALESTUDY_NETWORK"
"""The process whose network a worker joins, or why there is none; "shared" where the user wants none."""
SHARED = "shared"


@contextlib.contextmanager
def private_run(processes: int, variables: Mapping[str, str] = os.environ) -> Iterator[dict[str, str]]:
    """Variables for the workers of a run; what they name is there within.

    TensorFlow listens at all interfaces, and does what whoever connects tells it; Gloo knows no password
    for its data. In a network of their own nobody else on this machine reaches either. A process
    alone listens nowhere, and gets nothing.
    """
    if processes == 1:
        yield {}
        return
    own = {SECRET: new_secret()}
    if variables.get(NETWORK) == SHARED:
        yield own
        return
    # Of a session of its own, since Ctrl-C must not end it before the workers.
    with subprocess.Popen(
        [sys.executable, "-P", "-m", modules.NETWORK_NAMESPACE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, start_new_session=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        said = holder.stdout.readline().strip()
        yield own | {NETWORK: str(holder.pid) if said == READY else said or "the namespace's process ended"}


@contextlib.contextmanager
def granted(point: Point, gpus: Sequence[str]) -> Iterator[tuple[Point, int, list[int], Mapping[str, str]]]:
    """The point on the terms that it gets here, with its first port, its cores and its variables."""
    on_gpus = point.launch.device != "cpu" and devices.gpus() > 0
    shown = devices.showing(gpus) | assignment(gpus) if gpus else {}
    with (
        ports(point.processes + 1) as port,
        run_cores(point, devices.visible_gpus(os.environ | shown) if on_gpus else None) as (cpus, alone),
        private_run(point.processes) as own,
    ):
        if not alone and point.oversubscribed is None and point.launch.device != "gpu" and not on_gpus:
            point = point.on(oversubscribed="cores shared with another study")
        inherited = {name: value for name, value in os.environ.items() if name != ASSIGNED}
        yield point, port, cpus, inherited | own | shown
