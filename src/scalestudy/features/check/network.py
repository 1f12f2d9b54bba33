"""From one rank to another: names that resolve, and ports that connect."""

import ipaddress
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from scalestudy.features.check.mailbox import Facts, RankAnswer
from scalestudy.features.check.report import Line, failed, passed, warned
from scalestudy.study.engines import all_collectives

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


def addresses(host: str, limit: float) -> list[str] | str:
    """IPv4 and IPv6 addresses of a name, or why there are none."""
    found = limited(lambda: _look_up(host), limit)
    return f"no answer within {limit:g} s" if found is None else found


def _look_up(host: str) -> list[str] | str:
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return error.strerror or str(error)
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries))


def limited(work: Callable[[], Value], limit: float) -> Value | None:
    """What `work` gives, or None after `limit` seconds; a call that hangs is left behind."""
    future: Future[Value] = Future()

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    try:
        return future.result(limit)
    except TimeoutError:
        return None


def side_by_side(works: list[Callable[[], Value]]) -> list[Value]:
    """All of them at once, a few dozen at most."""
    with ThreadPoolExecutor(32) as pool:
        return list(pool.map(lambda work: work(), works))


def judge_names(
    hosts: Sequence[str], facts: Mapping[int, Facts], answers: Mapping[int, RankAnswer]
) -> list[Line]:
    """Whether each host's name resolves on every host, to an address that the other has."""
    held = {host: _addresses(facts.get(rank)) for rank, host in reversed(list(enumerate(hosts)))}
    lines = []
    for rank, answer in sorted(answers.items()):
        if not answer.names:
            continue
        here = hosts[rank]
        wrong = [
            line
            for host, resolved in answer.names.items()
            if (line := _name(here, host, resolved, held[host], several=len(held) > 1))
        ]
        lines += wrong or [passed("names", here, f"resolves {len(answer.names)} of {len(held)} hosts")]
    return lines


def _addresses(facts: Facts | None) -> set[str]:
    return {address for held in facts.interfaces.values() for address in held} if facts else set()


def _name(
    here: str, host: str, resolved: Sequence[str] | str, held: set[str], *, several: bool
) -> Line | None:
    """What is wrong with a name as it resolves on `here`, or None."""
    hint = f"Correct /etc/hosts or the name service on {here}, or use the names that resolve."
    if isinstance(resolved, str):
        return failed("names", here, f"{host} does not resolve: {resolved}", hint)
    loopback = [address for address in resolved if ipaddress.ip_address(address).is_loopback]
    if not several or not (loopback or (held and not held & set(resolved))):
        return None
    if loopback and here == host:
        return warned(
            "names", here, f"{host} is {loopback[0]} to itself: Gloo may offer that address to others",
            f"Take {host} out of the line {loopback[0]} in /etc/hosts, or set HOROVOD_GLOO_IFACE and "
            "NCCL_SOCKET_IFNAME (env in the site profile).",
        )  # fmt: skip
    if loopback:
        return failed("names", here, f"{host} is {loopback[0]}, which is {here} itself", hint)
    return warned("names", here, f"{host} is {resolved[0]}, which {host} does not have", hint)


def judge_ports(
    hosts: Sequence[str],
    facts: Mapping[int, Facts],
    answers: Mapping[int, RankAnswer],
    *,
    port: int | None,
    any_port: bool,
) -> list[Line]:
    """Whether each rank reaches each other; `any_port` if Gloo or NCCL listens at any port too."""
    lines = [
        failed("ports", hosts[rank], f"port {port + 1 + fact.local_rank} is taken", "End what listens there.")
        for rank, fact in sorted(facts.items())
        if port is not None and fact.port is None
    ]
    blocked: dict[tuple[str, str], Line] = {}
    links = [(one, other, link) for one, answer in answers.items() for other, link in answer.links.items()]
    for one, other, reasons in sorted(links):
        pair = hosts[one], hosts[other]
        for of_system, reason in enumerate(reasons):
            number = facts[other].other_port if of_system else facts[other].port
            if not reason or number is None or pair in blocked:
                continue
            where = f"{_place(one, hosts)} → {_place(other, hosts)}"
            seen = f"port {number}: {reason}" + (" (a port of the system's choice)" if of_system else "")
            action = (
                f"Open high ports between the nodes; until then use {_few_ports()}."
                if of_system
                else "Open it between the nodes (firewall), or ask the site which ports are open."
            )
            blocked[pair] = (warned if of_system and not any_port else failed)("ports", where, seen, action)
    pairs = list(blocked.values())
    lines += pairs[:MOST_PAIRS]
    if len(pairs) > MOST_PAIRS:
        lines.append(failed("ports", "others", f"{len(pairs) - MOST_PAIRS} more pairs", pairs[0].action))
    count = len(set(hosts))
    where = hosts[0] if count == 1 else f"{count} hosts"
    return lines or [
        passed("ports", where, f"all {len(links)} ways between {len(hosts)} ranks connect"),
    ]


def _few_ports() -> str:
    """What needs no more than the run's ports, as a study names it."""
    few = next(way for way in all_collectives() if way.communication and not way.any_port)
    return f'{few.swept} with communication = "{few.communication}"'


def interface(
    hosts: Sequence[str], facts: Mapping[int, Facts], answers: Mapping[int, RankAnswer]
) -> str | None:
    """The network interface, if it is one on all hosts, that holds the addresses that names resolve to."""
    found = {
        name
        for answer in answers.values()
        for host, resolved in answer.names.items()
        if (holder := facts.get(hosts.index(host))) is not None and not isinstance(resolved, str)
        for name, held in holder.interfaces.items()
        if set(held) & set(resolved) and name != "lo"
    }
    return found.pop() if len(found) == 1 else None


def _place(rank: int, hosts: Sequence[str]) -> str:
    return hosts[rank] if len(set(hosts)) == len(hosts) else f"{hosts[rank]} (rank {rank})"
