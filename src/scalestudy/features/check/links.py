"""What names, ports and clocks between ranks say."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from scalestudy.features.check.line import Line, failed, passed, warned
from scalestudy.features.check.mailbox import Answer, Facts
from scalestudy.study.engines import all_collectives

SKEW = 1.0
"""Seconds that clocks may differ."""
MOST_PAIRS = 8
"""Pairs of hosts that are named one by one."""


def judge_names(
    hosts: Sequence[str], facts: Mapping[int, Facts], answers: Mapping[int, Answer]
) -> list[Line]:
    """Whether each host's name resolves on every host, to an address that the other has.

    Args:
        hosts: Of each rank, as the launcher names them.
        facts: By rank.
        answers: By rank.
    """
    own = {host: _addresses(facts.get(rank)) for rank, host in reversed(list(enumerate(hosts)))}
    lines = []
    for rank, answer in sorted(answers.items()):
        if not answer.names:
            continue
        here = hosts[rank]
        found = [
            line
            for host, addresses in answer.names.items()
            if (line := _name(here, host, addresses, own[host], several=len(own) > 1))
        ]
        lines += found or [passed("names", here, f"resolves {len(answer.names)} of {len(own)} hosts")]
    return lines


def _addresses(facts: Facts | None) -> set[str]:
    return {address for each in facts.interfaces.values() for address in each} if facts else set()


def _name(here: str, host: str, found: Sequence[str] | str, own: set[str], *, several: bool) -> Line | None:
    """What is wrong with a name as it resolves on `here`, or None."""
    hint = f"Correct /etc/hosts or the name service on {here}, or use the names that resolve."
    if isinstance(found, str):
        return failed("names", here, f"{host} does not resolve: {found}", hint)
    loopback = [address for address in found if ipaddress.ip_address(address).is_loopback]
    if not several or not (loopback or (own and not own & set(found))):
        return None
    if loopback and here == host:
        return warned(
            "names", here, f"{host} is {loopback[0]} to itself: Gloo may offer that address to others",
            f"Take {host} out of the line {loopback[0]} in /etc/hosts, or set HOROVOD_GLOO_IFACE and "
            "NCCL_SOCKET_IFNAME (env in the site profile).",
        )  # fmt: skip
    if loopback:
        return failed("names", here, f"{host} is {loopback[0]}, which is {here} itself", hint)
    return warned("names", here, f"{host} is {found[0]}, which {host} does not have", hint)


def judge_ports(
    hosts: Sequence[str],
    facts: Mapping[int, Facts],
    answers: Mapping[int, Answer],
    *,
    port: int | None,
    any_port: bool,
) -> list[Line]:
    """Whether each rank reaches each other.

    Args:
        hosts: Of each rank.
        facts: By rank.
        answers: By rank.
        port: First port of the run.
        any_port: Whether what will be used (Gloo, NCCL) also listens at ports of the system's choice.
    """
    lines = [
        failed("ports", hosts[rank], f"port {port + 1 + each.local_rank} is taken", "End what listens there.")
        for rank, each in sorted(facts.items())
        if port is not None and each.port is None
    ]
    blocked: dict[tuple[str, str], Line] = {}
    tried = 0
    for one, other, links in _links(answers):
        tried += 1
        pair = hosts[one], hosts[other]
        for which, (link, name) in enumerate(zip(links, ("port", "other_port"), strict=True)):
            number = getattr(facts[other], name)
            if isinstance(link, float) or number is None or pair in blocked:
                continue
            where = f"{_place(one, hosts)} → {_place(other, hosts)}"
            seen = f"port {number}: {link}" + (" (a port of the system's choice)" if which else "")
            action = (
                "Open it between the nodes (firewall), or ask the site which ports are open."
                if not which
                else f"Open high ports between the nodes; until then use {_few_ports()}."
            )
            blocked[pair] = (warned if which and not any_port else failed)("ports", where, seen, action)
    pairs = list(blocked.values())
    lines += pairs[:MOST_PAIRS]
    if len(pairs) > MOST_PAIRS:
        lines.append(failed("ports", "others", f"{len(pairs) - MOST_PAIRS} more pairs", pairs[0].action))
    if not lines:
        lines.append(passed("ports", _all(hosts), f"all {tried} ways between {len(hosts)} ranks connect"))
    return lines


def _few_ports() -> str:
    """What needs no more than the run's ports, as a study names it."""
    few = next(each for each in all_collectives() if each.communication and not each.any_port)
    return f'{few.swept} with communication = "{few.communication}"'


def _links(answers: Mapping[int, Answer]) -> Iterator[tuple[int, int, tuple[float | str, float | str]]]:
    for one, answer in sorted(answers.items()):
        for other, links in sorted(answer.links.items()):
            yield one, other, links


def judge_clocks(hosts: Sequence[str], answers: Mapping[int, Answer]) -> list[Line]:
    """How far clocks are from rank 0's."""
    if 0 not in answers:
        return []
    links = [(rank, pair) for _, rank, pair in _links({0: answers[0]}) if hosts[rank] != hosts[0]]
    offsets = {
        hosts[rank]: next((link for link in pair if isinstance(link, float)), None) for rank, pair in links
    }
    known = {host: offset for host, offset in offsets.items() if offset is not None}
    wrong = [
        warned(
            "clocks", host, f"{offset:+.2f} s from {hosts[0]}",
            "Let chrony or ntpd set the clock; times in logs of several nodes do not agree.",
        )
        for host, offset in known.items()
        if abs(offset) > SKEW
    ]  # fmt: skip
    if wrong:
        return wrong
    if not known:
        return [passed("clocks", hosts[0], "one host, one clock")] if not offsets else []
    worst = max(known.values(), key=abs)
    return [passed("clocks", _all(hosts), f"within {abs(worst) * 1000:.1f} ms of {hosts[0]}")]


def interface(hosts: Sequence[str], facts: Mapping[int, Facts], answers: Mapping[int, Answer]) -> str | None:
    """The network interface, if it is one on all hosts, that holds the addresses that names resolve to."""
    found = set()
    for answer in answers.values():
        for host, addresses in answer.names.items():
            holder = facts.get(hosts.index(host))
            if holder is None or isinstance(addresses, str):
                continue
            found |= {
                name
                for name, held in holder.interfaces.items()
                if set(held) & set(addresses) and name != "lo"
            }
    return found.pop() if len(found) == 1 else None


def _place(rank: int, hosts: Sequence[str]) -> str:
    return hosts[rank] if len(set(hosts)) == len(hosts) else f"{hosts[rank]} (rank {rank})"


def _all(hosts: Sequence[str]) -> str:
    names = list(dict.fromkeys(hosts))
    return names[0] if len(names) == 1 else f"{len(names)} hosts"
