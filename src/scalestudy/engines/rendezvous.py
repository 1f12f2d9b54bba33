"""The rendezvous of a run's processes: rank 0's address, and each process's network interface for data.

On one node both are the loopback. Across nodes rank 0 writes its address to the run folder; processes that
do not see the folder resolve the name of rank 0's host.
"""

import ipaddress
import os
import socket
import time
from collections.abc import Iterator

import psutil

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import MEETING, publish, published
from scalestudy.cluster.resolve import PROGRESS_TIMEOUT
from scalestudy.config.settings import LaunchSettings
from scalestudy.util.errors import RunError

LOOPBACK = "127.0.0.1"
ANY = "0.0.0.0"
"""Address to listen on all interfaces."""
CONNECT_WITHIN = 2.0
"""Timeout of one connection attempt in seconds."""


def start_within() -> float:
    """Return the maximum seconds between the starts of two ranks: the progress timeout of the run."""
    return float(os.environ.get(PROGRESS_TIMEOUT, LaunchSettings().progress_timeout))


def exchange_within() -> float:
    """Return the seconds after which a library may give up an exchange that does not complete.

    That is long after the watchdogs, which tell the rank that stands still from those that wait for it; a
    library blames the rank that reports the error.
    """
    return 2 * start_within() + 60


def meeting_address(placement: Placement) -> str:
    """Return the address to listen on for rank 0, or the address at which other ranks reach rank 0.

    Other ranks wait until rank 0 listens on the placement's port. Rank 0 listens on one interface: that of
    its host name, or of the route to another node. It listens on all interfaces only if neither is known.

    Args:
        placement: Placement of this process; it must have a port.

    Raises:
        RunError: If this host has no address, or if rank 0 is not reached in time.
    """
    if placement.rank:
        return _reached(placement)
    if _one_node(placement):
        return LOOPBACK
    addresses = own_addresses(placement)
    if not addresses:
        raise RunError(
            f"an address at which other nodes reach {socket.gethostname()}",
            "no IPv4 address at an interface that is up",
            "Ask the site how nodes reach each other.",
        )
    publish(addresses, placement)
    return addresses[0] if len(addresses) == 1 else ANY


def find_address(placement: Placement) -> str:
    """Return rank 0's address without waiting for rank 0: from interfaces on its host, else from its name.

    Raises:
        RunError: If no address is known.
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
    """Return a socket that listens on the address that `meeting_address` returned on rank 0.

    Raises:
        OSError: If it cannot listen there.
    """
    return socket.create_server((address, port), backlog=4096)


def interface_of(placement: Placement, address: str | None = None) -> str | None:
    """Return the interface that Gloo must be given, or None if its default, by host name, is right.

    The default is wrong if a node does not resolve its own name, or resolves it to the loopback, as with
    Debian's default hosts file. Then the interface is that of the route to rank 0 at `address`, or on rank 0
    of the route to another node.
    """
    if _one_node(placement):
        return _holder(LOOPBACK)
    named = addresses_of(socket.gethostname())
    if named and not ipaddress.ip_address(named[0]).is_loopback:
        return None
    ways = [address] if placement.rank and address else _others(placement)
    sources = [source for way in ways for source in _sources(way)]
    return next(filter(None, map(_holder, sources or outward_addresses())), None)


def own_addresses(placement: Placement) -> list[str]:
    """Return this host's addresses for other nodes: one if names or routes determine it, else all."""
    outward = outward_addresses()
    named = addresses_of(placement.hosts[placement.rank])
    routed = (source for other in _others(placement) for source in _sources(other))
    known = (
        address
        for addresses in (named, routed)
        for address in addresses
        if address in outward
    )
    first = next(known, None)
    return outward if first is None else [first]


def outward_addresses() -> list[str]:
    """Return IPv4 addresses of interfaces that are up, without loopback and link-local addresses."""
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    held = [
        ipaddress.ip_address(one.address)
        for name, addresses in psutil.net_if_addrs().items()
        if name in up
        for one in addresses
        if one.family == socket.AF_INET
    ]
    return [
        str(address)
        for address in held
        if not (address.is_loopback or address.is_link_local)
    ]


def addresses_of(host: str) -> list[str]:
    """Return the IPv4 addresses that a name resolves to on this host, or [] if it does not resolve."""
    try:
        known = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in known))


def _reached(placement: Placement) -> str:
    """Return the first address of rank 0 that accepts a connection."""
    deadline, errors = time.monotonic() + start_within(), dict[str, str]()
    while True:
        errors.clear()
        for address in _candidates(placement):
            try:
                with socket.create_connection(
                    (address, placement.port), timeout=CONNECT_WITHIN
                ):
                    return address
            except OSError as error:
                errors[address] = str(error)
        nowhere = (
            not errors and MEETING not in os.environ
        )  # no name to resolve and no published address
        if nowhere or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    tried = "; ".join(f"{address}: {error}" for address, error in errors.items())
    host = placement.hosts[0]
    raise RunError(
        f"rank 0 to listen at port {placement.port} of {host} within {start_within():.0f} s",
        tried
        or f"no address of {host}, which does not resolve on {socket.gethostname()}",
        "Look into rank 0's log; a firewall between the nodes looks the same."
        if tried
        else "Look into rank 0's log; ask the site for names of nodes that resolve on all nodes.",
    )


def _candidates(placement: Placement) -> Iterator[str]:
    """Yield the addresses of rank 0 known so far."""
    if _one_node(placement):
        yield LOOPBACK
        return
    announced = published(placement)
    yield from announced
    named = addresses_of(placement.hosts[0])
    if (
        placement.hosts[placement.rank] == placement.hosts[0]
    ):  # the same result as on rank 0
        named = own_addresses(placement)
    yield from (
        address
        for address in named
        if address not in announced and not ipaddress.ip_address(address).is_loopback
    )


def _one_node(placement: Placement) -> bool:
    return len(set(placement.hosts)) == 1


def _others(placement: Placement) -> list[str]:
    """Return the other hosts in the order of their ranks."""
    return [
        host
        for host in dict.fromkeys(placement.hosts)
        if host != placement.hosts[placement.rank]
    ]


def _sources(host: str) -> Iterator[str]:
    """Yield this host's addresses on the route to `host`, a name or an address."""
    for address in addresses_of(host):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(
                    (address, 9)
                )  # sends nothing; the kernel only chooses the route
            except OSError:
                continue
            yield str(probe.getsockname()[0])


def _holder(address: str) -> str | None:
    interfaces = psutil.net_if_addrs().items()
    return next(
        (
            name
            for name, held in interfaces
            if any(one.address == address for one in held)
        ),
        None,
    )
