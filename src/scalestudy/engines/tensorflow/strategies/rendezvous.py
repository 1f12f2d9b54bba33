"""Where Horovod's processes find each other: at MPI, at horovodrun, or at rank 0 itself (no ssh).

Rank 0 listens at one interface, the loopback where all are on one node, and hears only who brings the run's
secret. Gloo's connections for data are made at the same interface, to ports that they tell each other there.
"""

import contextlib
import ipaddress
import os
import socket
import threading
import time
from collections.abc import Sequence

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.secret import SECRET
from scalestudy.util.errors import RunError, UserError

LOOPBACK = "127.0.0.1"
WAIT = 120.0
"""Seconds that a rank waits for rank 0 to listen."""

IDENTITY = (
    "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME", "HOROVOD_GLOO_RENDEZVOUS_ADDR",
    "HOROVOD_GLOO_RENDEZVOUS_PORT", "HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_ELASTIC",
)  # fmt: skip
"""What tells Horovod who and where it is; left over from another run, it would be believed."""


def join(placement: Placement, *, device: str = "cpu") -> None:
    """Set the environment that Horovod's controller reads; under Gloo, rank 0 also serves the rendezvous.

    Under mpirun MPI is used if Horovod is built with it, otherwise Gloo where the hosts are known.

    Args:
        placement: This process among the others.
        device: "cpu" or "gpu".

    Raises:
        UserError: If there is no way to meet.
        RunError: If rank 0 cannot listen, or does not in time.
    """
    for name, value in tuning(device).items():
        os.environ.setdefault(name, value)
    if placement.source == "horovodrun":
        return
    for name in IDENTITY:
        os.environ.pop(name, None)
    if placement.source == "openmpi" and mpi_built():
        os.environ["HOROVOD_CONTROLLER"] = "mpi"
        return
    if placement.size > 1:
        _check(placement)
    os.environ.update(gloo_environment(placement))
    if placement.size == 1:
        return
    assert placement.port is not None
    secret, address = _secret(), _address(placement)
    os.environ |= _meeting_place(address, placement.port, secret)
    interface = _interface(placement)
    if interface:
        os.environ.setdefault("HOROVOD_GLOO_IFACE", interface)
    if placement.rank == 0:
        _serve(placement.hosts, address, placement.port, secret)
    else:
        _await(address, placement.port)


def tuning(device: str) -> dict[str, str]:
    """What we change of how Horovod works, unless the user has said otherwise.

    A bucket of gradients goes alone, whatever else is there at the moment: fused with another by chance,
    it would be summed in another order. On CPUs Horovod's thread asks less often whether there is work:
    every millisecond, as it does, takes a tenth of a core, which a worker on one core feels more than
    the longer wait. A GPU's worker has cores to spare, and would only wait.
    """
    alone = {"HOROVOD_DISABLE_GROUP_FUSION": "1"}
    return alone if device == "gpu" else alone | {"HOROVOD_CYCLE_TIME": "2.5"}


def mpi_built() -> bool:
    """Whether Horovod's library holds an MPI controller. Starts neither Horovod nor MPI."""
    import horovod.tensorflow as hvd

    return bool(hvd.mpi_built())


def gloo_environment(placement: Placement) -> dict[str, str]:
    """The variables that Gloo's controller reads.

    Horovod's cross communicator joins the processes of one local rank over the nodes that have it, so
    with uneven nodes its ranks are not the nodes' numbers.
    """
    hosts, local_rank = placement.hosts, placement.local_rank
    nodes = dict.fromkeys(hosts)
    cross = [node for node in nodes if hosts.count(node) > local_rank]
    return {
        "HOROVOD_HOSTNAME": hosts[placement.rank],
        "HOROVOD_RANK": str(placement.rank),
        "HOROVOD_SIZE": str(placement.size),
        "HOROVOD_LOCAL_RANK": str(local_rank),
        "HOROVOD_LOCAL_SIZE": str(placement.local_size),
        "HOROVOD_CROSS_RANK": str(cross.index(hosts[placement.rank])),
        "HOROVOD_CROSS_SIZE": str(len(cross)),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }


def _meeting_place(address: str, port: int, secret: str) -> dict[str, str]:
    from scalestudy.engines.tensorflow.strategies.horovod_private import told_address

    return {
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": told_address(address, port, secret),
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
    }


def _secret() -> str:
    secret = os.environ.pop(SECRET, "")
    if not secret:
        raise UserError(
            f"a secret in {SECRET}, by which the run's processes know each other",
            "none",
            "Start the workers with scalestudy: their launcher or the run's folder holds it.",
        )
    return secret


def _check(placement: Placement) -> None:
    if all(placement.hosts) and placement.port is not None:
        return
    known = "the hosts are unknown" if not all(placement.hosts) else "there is no port"
    raise UserError(
        "a place for Horovod's processes to meet: MPI, or the host of every rank and a port",
        f"a Horovod without MPI, and {known} (from {placement.source})",
        "Build Horovod with MPI (MPI=1 environments/build-horovod.sh), start the workers with srun, or let "
        "mpirun fill node after node and name a free port in MASTER_PORT."
        if placement.source == "openmpi"
        else "Start it with `scalestudy run`, or name a free port in MASTER_PORT.",
    )


def _one_node(placement: Placement) -> bool:
    return len(set(placement.hosts)) == 1


def _address(placement: Placement) -> str:
    """Address of rank 0's host, as seen from here; on rank 0 the one that it listens at."""
    if _one_node(placement):
        return LOOPBACK
    try:
        found = socket.gethostbyname(placement.hosts[0])
    except OSError as error:
        raise RunError(
            f"an address of {placement.hosts[0]}, the host of rank 0",
            f"{error} on {socket.gethostname()}",
            "Ask the site for names of nodes that resolve on all nodes.",
        ) from error
    if placement.rank == 0 and ipaddress.ip_address(found).is_loopback:
        return _outward(placement)
    return found


def _interface(placement: Placement) -> str | None:
    """The interface that Gloo must be told: it takes the one that this host's own name resolves to.

    That is right unless a node resolves its own name to itself only, as Debian's default hosts file
    does; then it is the interface on the way to another node.
    """
    if _one_node(placement):
        return _holder(LOOPBACK)
    own = LOOPBACK
    with contextlib.suppress(OSError):
        own = socket.gethostbyname(socket.gethostname())
    return _holder(_outward(placement)) if ipaddress.ip_address(own).is_loopback else None


def _outward(placement: Placement) -> str:
    """Address of this host on the way to another node of the run."""
    peer = next(host for host in placement.hosts if host != placement.hosts[placement.rank])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((peer, 9))  # sends nothing; the kernel only chooses the way
        return str(probe.getsockname()[0])


def _holder(address: str) -> str | None:
    import psutil

    for name, addresses in psutil.net_if_addrs().items():
        if any(each.address == address for each in addresses):
            return name
    return None


def _serve(hosts: Sequence[str], address: str, port: int, secret: str) -> None:
    from scalestudy.engines.tensorflow.strategies.horovod_private import rendezvous_server

    try:
        server = rendezvous_server(hosts, address, port, secret)
    except OSError as error:
        raise RunError(
            f"port {port} of {socket.gethostname()} ({address}) to be free for Horovod's rendezvous",
            str(error),
            "End what listens there (`ss -ltnp`), or start again: another job gets another port.",
        ) from error
    threading.Thread(target=server.serve_forever, name="rendezvous", daemon=True).start()


def _await(host: str, port: int) -> None:
    deadline = time.monotonic() + WAIT
    while True:
        try:
            with socket.create_connection((host, port), timeout=2):
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise RunError(
                    f"rank 0 to listen at {host}:{port} within {WAIT:.0f} s",
                    str(error),
                    "Look into rank 0's log; a firewall between the nodes looks the same.",
                ) from error
            time.sleep(0.05)
