"""From one rank to another: ports that connect."""

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from scalestudy.features.check.mailbox import Facts, RankAnswer
from scalestudy.features.check.report import Line, failed, passed

MOST_PAIRS = 8
"""Pairs of hosts that are named one by one."""
Value = TypeVar("Value")


class Responder:
    """Answers each connection to its port (0: any free one) with its rank, until it is closed.

    Raises:
        OSError: If the port is taken.
    """

    def __init__(self, rank: int, port: int) -> None:
        self._greeting = f"scalestudy {rank}\n".encode()
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        self._socket = socket.create_server(("", port), family=family, backlog=256, dualstack_ipv6=dual)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, name=f"listen-{self.port}", daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with suppress(OSError), connection:
                    connection.sendall(self._greeting)

    def close(self) -> None:
        """Free the port."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()


def reach(host: str, port: int, rank: int, limit: float) -> str:
    """Connect to a rank's responder; "" where it answers, else why not."""
    try:
        with socket.create_connection((host, port), timeout=limit) as connection:
            connection.settimeout(limit)
            answer = connection.makefile("rb").readline().decode(errors="replace").strip()
    except TimeoutError:
        return f"no answer within {limit:g} s"
    except OSError as error:
        return error.strerror or str(error)
    return "" if answer == f"scalestudy {rank}" else f"something else answers there ({answer[:40]!r})"


def side_by_side(works: list[Callable[[], Value]]) -> list[Value]:
    """All of them at once, a few dozen at most."""
    with ThreadPoolExecutor(32) as pool:
        return list(pool.map(lambda work: work(), works))


def judge_ports(
    hosts: Sequence[str], facts: Mapping[int, Facts], answers: Mapping[int, RankAnswer], *, port: int
) -> list[Line]:
    """Whether each rank reaches each other at its port, of those that follow `port`."""
    lines = [
        failed("ports", hosts[rank], f"port {port + 1 + fact.local_rank} is taken", "End what listens there.")
        for rank, fact in sorted(facts.items())
        if fact.port is None
    ]
    blocked: dict[tuple[str, str], Line] = {}
    links = [
        (one, other, reason) for one, answer in answers.items() for other, reason in answer.links.items()
    ]
    for one, other, reason in sorted(links):
        number = facts[other].port
        if reason and number is not None:
            where = f"{_place(one, hosts)} → {_place(other, hosts)}"
            action = "Open it between the nodes (firewall), or ask the site which ports are open."
            line = failed("ports", where, f"port {number}: {reason}", action)
            blocked.setdefault((hosts[one], hosts[other]), line)
    pairs = list(blocked.values())
    lines += pairs[:MOST_PAIRS]
    if len(pairs) > MOST_PAIRS:
        lines.append(failed("ports", "others", f"{len(pairs) - MOST_PAIRS} more pairs", pairs[0].action))
    count = len(set(hosts))
    where = hosts[0] if count == 1 else f"{count} hosts"
    return lines or [passed("ports", where, f"all {len(links)} ways between {len(hosts)} ranks connect")]


def _place(rank: int, hosts: Sequence[str]) -> str:
    return hosts[rank] if len(set(hosts)) == len(hosts) else f"{hosts[rank]} (rank {rank})"
