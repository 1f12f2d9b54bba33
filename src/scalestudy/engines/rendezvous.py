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
    if len(addresses) > 1:
        return ANY
    return addresses[0]


def find_address(placement: Placement) -> str:
    """Return rank 0's address without waiting for rank 0: from interfaces on its host, else from its name.

    Raises:
        RunError: If no address is known.
    """
    if _one_node(placement):
        return LOOPBACK
    known = _addresses_of_first(placement)
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
    # All other ranks may connect at the same moment.
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
    others = _others(placement)
    if placement.rank and address:
        others = [address]
    sources: list[str] = []
    for other in others:
        sources += _sources(other)
    # Without a route, any interface of this host is better than the loopback, which none but it reaches.
    for source in sources or outward_addresses():
        interface = _holder(source)
        if interface is not None:
            return interface
    return None


def own_addresses(placement: Placement) -> list[str]:
    """Return this host's addresses for other nodes: one if names or routes determine it, else all."""
    outward = outward_addresses()
    for address in addresses_of(placement.hosts[placement.rank]):
        if address in outward:
            return [address]
    for other in _others(placement):
        for source in _sources(other):
            if source in outward:
                return [source]
    return outward


def outward_addresses() -> list[str]:
    """Return IPv4 addresses of interfaces that are up, without loopback and link-local addresses."""
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    outward = []
    for name, addresses in psutil.net_if_addrs().items():
        if name not in up:
            continue
        for one in addresses:
            if one.family != socket.AF_INET:
                continue
            address = ipaddress.ip_address(one.address)
            if not (address.is_loopback or address.is_link_local):
                outward.append(str(address))
    return outward


def addresses_of(host: str) -> list[str]:
    """Return the IPv4 addresses that a name resolves to on this host, or [] if it does not resolve."""
    try:
        known = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in known))


def _reached(placement: Placement) -> str:
    """Return the first address of rank 0 that accepts a connection."""
    deadline = time.monotonic() + start_within()
    errors: dict[str, str] = {}
    while True:
        # Only the last attempts are reported: rank 0 may have announced other addresses meanwhile.
        errors.clear()
        for address in _candidates(placement):
            try:
                # Rank 0 may not listen yet, or not at this of its addresses.
                with socket.create_connection(
                    (address, placement.port),
                    timeout=CONNECT_WITHIN,
                ):
                    return address
            except OSError as error:
                errors[address] = str(error)
        # No name to resolve, and nobody publishes an address: waiting would not help.
        nowhere = not errors and MEETING not in os.environ
        if nowhere or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    tried = "; ".join(f"{address}: {error}" for address, error in errors.items())
    host = placement.hosts[0]
    action = "a firewall between the nodes looks the same."
    if not tried:
        tried = (
            f"no address of {host}, which does not resolve on {socket.gethostname()}"
        )
        action = "ask the site for names of nodes that resolve on all nodes."
    raise RunError(
        f"rank 0 to listen at port {placement.port} of {host} within {start_within():.0f} s",
        tried,
        f"Look into rank 0's log; {action}",
    )


def _candidates(placement: Placement) -> Iterator[str]:
    """Yield the addresses of rank 0 known so far."""
    if _one_node(placement):
        yield LOOPBACK
        return
    announced = published(placement)
    yield from announced
    for address in _addresses_of_first(placement):
        if address not in announced and not ipaddress.ip_address(address).is_loopback:
            yield address


def _addresses_of_first(placement: Placement) -> list[str]:
    """Return the addresses of rank 0 as seen from this host; on its own host, the ones that it finds itself."""
    first = placement.hosts[0]
    if placement.hosts[placement.rank] == first:
        return own_addresses(placement)
    return addresses_of(first)


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
                # It sends nothing; the kernel only chooses the route.
                probe.connect((address, 9))
            except OSError:
                continue
            yield str(probe.getsockname()[0])


def _holder(address: str) -> str | None:
    for name, held in psutil.net_if_addrs().items():
        if any(one.address == address for one in held):
            return name
    return None
