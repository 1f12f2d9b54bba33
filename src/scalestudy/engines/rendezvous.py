"""Where the processes of a run meet: the address at which rank 0 listens, and each one's interface for data.

On one node that is the loopback.
"""

import contextlib
import ipaddress
import os
import socket
import time

import psutil

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.variables import PROGRESS_TIMEOUT
from scalestudy.study.settings import LaunchSettings
from scalestudy.util.errors import RunError

LOOPBACK = "127.0.0.1"


def start_within() -> float:
    """Seconds that ranks may start apart: as long as the run may be without progress."""
    return float(os.environ.get(PROGRESS_TIMEOUT, LaunchSettings().progress_timeout))


def meeting_address(placement: Placement) -> str:
    """Address of rank 0's host, as seen from here; on rank 0 the one that it listens at.

    Raises:
        RunError: If the name of that host does not resolve.
    """
    if _one_node(placement):
        return LOOPBACK
    try:
        address = socket.gethostbyname(placement.hosts[0])
    except OSError as error:
        raise RunError(
            f"an address of {placement.hosts[0]}, the host of rank 0",
            f"{error} on {socket.gethostname()}",
            "Ask the site for names of nodes that resolve on all nodes.",
        ) from error
    at_home = placement.rank == 0 and ipaddress.ip_address(address).is_loopback
    return _outward(placement) if at_home else address


def interface_of(placement: Placement) -> str | None:
    """The interface that Gloo must be told; None where that of the host's own name is right.

    It is not where a node resolves its own name to itself only, as Debian's default hosts file does; then it
    is the interface on the way to another node.
    """
    if _one_node(placement):
        return _holder(LOOPBACK)
    address = LOOPBACK
    with contextlib.suppress(OSError):
        address = socket.gethostbyname(socket.gethostname())
    return _holder(_outward(placement)) if ipaddress.ip_address(address).is_loopback else None


def await_listener(host: str, port: int) -> None:
    """Wait until rank 0 listens there.

    Raises:
        RunError: If it does not in time.
    """
    deadline = time.monotonic() + start_within()
    while True:
        try:
            with socket.create_connection((host, port), timeout=2):
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise RunError(
                    f"rank 0 to listen at {host}:{port} within {start_within():.0f} s",
                    str(error),
                    "Look into rank 0's log; a firewall between the nodes looks the same.",
                ) from error
            time.sleep(0.05)


def _one_node(placement: Placement) -> bool:
    return len(set(placement.hosts)) == 1


def _outward(placement: Placement) -> str:
    """Address of this host on the way to another node of the run."""
    peer = next(host for host in placement.hosts if host != placement.hosts[placement.rank])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((peer, 9))  # sends nothing; the kernel only chooses the way
        return str(probe.getsockname()[0])


def _holder(address: str) -> str | None:
    interfaces = psutil.net_if_addrs().items()
    return next((name for name, held in interfaces if any(one.address == address for one in held)), None)
