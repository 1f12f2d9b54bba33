"""Ports and cores that one run at a time may call its own, among all studies of this machine.

A reservation is a lock on a file, held by the launcher: it ends with the launcher, however that ends.
The files are this user's alone. What another user could lock, he could keep from us for ever; his studies
are seen at the ports, where somebody listens, and not at the cores.
"""

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence

from scalestudy.errors import RunError
from scalestudy.locks import Timeout, take
from scalestudy.private import private_folder

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
    with contextlib.ExitStack() as held:
        position = 0
        while position < len(order):
            first = order[position]
            with contextlib.ExitStack() as attempt:
                if all(
                    take_own(attempt, f"port-{port}") and _free(port) for port in range(first, first + count)
                ):
                    held.push(attempt.pop_all())
                    break
            position += count
        else:
            raise RunError(
                f"{count} free ports between {PORTS.start} and {PORTS.stop}",
                "none",
                "End what listens there, or wait for other studies to finish.",
            )
        yield first


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
