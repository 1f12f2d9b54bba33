"""Where the processes of a run meet: the address at which rank 0 listens, and each one's interface for data.

On one node that is the loopback. Across nodes rank 0 tells its address in the run's folder; where that is not
seen, the others go by the name of its host.
"""

import ipaddress
import os
import socket
import time
from collections.abc import Iterator

import psutil

from scalestudy.cluster.meeting import MEETING, publish, published
from scalestudy.cluster.placement import Placement
from scalestudy.cluster.variables import PROGRESS_TIMEOUT
from scalestudy.study.settings import LaunchSettings
from scalestudy.util.errors import RunError

LOOPBACK = "127.0.0.1"
ANY = {4: "0.0.0.0", 6: "::"}
"""What listens at all interfaces, by the version of IP; under Linux that of IPv6 hears IPv4 as well."""
CONNECT_WITHIN = 2.0
"""Seconds to wait for an answer from one address."""


def start_within() -> float:
    """Seconds that ranks may start apart: as long as the run may be without progress."""
    return float(os.environ.get(PROGRESS_TIMEOUT, LaunchSettings().progress_timeout))


def meeting_address(placement: Placement, *, ipv6: bool = True) -> str:
    """On rank 0 the address to listen at, at the placement's port; elsewhere the one by which it is reached.

    Other ranks wait until rank 0 listens. It does so at one interface, that of the name of its host or of the
    way to another node; only where neither is known at all.

    Args:
        placement: This process among the others; it has a port.
        ipv6: Whether what is to listen and connect knows IPv6.

    Raises:
        RunError: If this host has no address, or if rank 0 is not reached in time.
    """
    if placement.rank:
        return _reached(placement, ipv6)
    if _one_node(placement):
        return LOOPBACK
    addresses = own_addresses(placement, ipv6=ipv6)
    if not addresses:
        raise RunError(
            f"an address at which other nodes reach {socket.gethostname()}",
            f"none{'' if ipv6 else ' of IPv4'} at an interface that is up",
            "Ask the site how nodes reach each other.",
        )
    publish(addresses, placement)
    return addresses[0] if len(addresses) == 1 else ANY[max(map(_version, addresses))]


def known_address(placement: Placement) -> str:
    """The address of rank 0 as far as names tell it, for what listens, or waits for it, at its own time.

    Raises:
        RunError: If there is none.
    """
    if _one_node(placement):
        return LOOPBACK
    beside = placement.hosts[placement.rank] == placement.hosts[0]
    known = own_addresses(placement) if beside else addresses_of(placement.hosts[0])
    if not known:
        raise RunError(
            f"an address of {placement.hosts[0]}, the host of rank 0",
            f"none on {socket.gethostname()}",
            "Ask the site for names of nodes that resolve on all nodes.",
        )
    return known[0]


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens at an address that `meeting_address` has given to rank 0.

    Raises:
        OSError: If it cannot.
    """
    family = socket.AF_INET6 if _version(address) == 6 else socket.AF_INET
    return socket.create_server(
        (address, port), family=family, backlog=4096, dualstack_ipv6=address == ANY[6]
    )


def interface_of(placement: Placement, address: str | None = None) -> str | None:
    """The interface that Gloo must be told; None where that of the host's own name is right.

    It is not where a node resolves its own name not at all, or to itself only, as Debian's default hosts file
    has it; then it is the interface on the way to rank 0 at `address`, and on rank 0 to another node.
    """
    if _one_node(placement):
        return _holder(LOOPBACK)
    named = addresses_of(socket.gethostname())
    if named and not ipaddress.ip_address(named[0]).is_loopback:
        return None
    ways = [address] if placement.rank and address else _others(placement)
    sources = [source for way in ways for source in _sources(way)]
    return next(filter(None, map(_holder, sources or outward_addresses())), None)


def own_addresses(placement: Placement, *, ipv6: bool = True) -> list[str]:
    """Addresses of this host for other nodes: one where names tell it, else all, IPv4 first."""
    outward = [address for address in outward_addresses() if ipv6 or _version(address) == 4]
    named = addresses_of(placement.hosts[placement.rank])
    routed = (source for other in _others(placement) for source in _sources(other))
    known = (address for addresses in (named, routed) for address in addresses if address in outward)
    first = next(known, None)
    return outward if first is None else [first]


def outward_addresses() -> list[str]:
    """Addresses of interfaces that are up, IPv4 first, but those that no other host reaches by them alone."""
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    held = [
        ipaddress.ip_address(one.address)
        for name, addresses in psutil.net_if_addrs().items() if name in up
        for one in addresses if one.family in (socket.AF_INET, socket.AF_INET6) and "%" not in one.address
    ]  # fmt: skip
    useful = [address for address in held if not (address.is_loopback or address.is_link_local)]
    return [str(address) for address in sorted(useful, key=lambda address: address.version)]


def addresses_of(host: str) -> list[str]:
    """The addresses that a name resolves to here, IPv4 first; none if it does not."""
    try:
        known = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    addresses = dict.fromkeys(str(address[0]) for *_, address in known)
    return sorted((address for address in addresses if "%" not in address), key=_version)


def _reached(placement: Placement, ipv6: bool) -> str:
    """The first address of rank 0 that answers."""
    deadline, errors = time.monotonic() + start_within(), dict[str, str]()
    while True:
        errors.clear()
        for address in _candidates(placement):
            if not ipv6 and _version(address) == 6:
                continue
            try:
                with socket.create_connection((address, placement.port), timeout=CONNECT_WITHIN):
                    return address
            except OSError as error:
                errors[address] = str(error)
        nowhere = not errors and MEETING not in os.environ  # it neither resolves nor will be told
        if nowhere or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    tried = "; ".join(f"{address}: {error}" for address, error in errors.items())
    host = placement.hosts[0]
    raise RunError(
        f"rank 0 to listen at port {placement.port} of {host} within {start_within():.0f} s",
        tried or f"no address of {host}, which does not resolve on {socket.gethostname()}",
        "Look into rank 0's log; a firewall between the nodes looks the same."
        if tried
        else "Look into rank 0's log; ask the site for names of nodes that resolve on all nodes.",
    )


def _candidates(placement: Placement) -> Iterator[str]:
    """Where rank 0 may be reached, as far as is known by now."""
    if _one_node(placement):
        yield LOOPBACK
        return
    told = published(placement)
    yield from told
    named = addresses_of(placement.hosts[0])
    if placement.hosts[placement.rank] == placement.hosts[0]:  # as rank 0 finds it, in any case
        named = own_addresses(placement)
    yield from (
        address for address in named if address not in told and not ipaddress.ip_address(address).is_loopback
    )


def _one_node(placement: Placement) -> bool:
    return len(set(placement.hosts)) == 1


def _others(placement: Placement) -> list[str]:
    """The other hosts, those of neighbours first."""
    return [host for host in dict.fromkeys(placement.hosts) if host != placement.hosts[placement.rank]]


def _sources(host: str) -> Iterator[str]:
    """Addresses of this host on the way to another, by name or address, IPv4 first."""
    for address in addresses_of(host):
        family = socket.AF_INET6 if _version(address) == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((address, 9))  # sends nothing; the kernel only chooses the way
            except OSError:
                continue
            yield str(probe.getsockname()[0])


def _version(address: str) -> int:
    return ipaddress.ip_address(address).version


def _holder(address: str) -> str | None:
    interfaces = psutil.net_if_addrs().items()
    return next((name for name, held in interfaces if any(one.address == address for one in held)), None)
