"""The rendezvous of Horovod's processes: by MPI, or by a server on rank 0, without ssh.

Rank 0 accepts only requests with the run's secret, on one interface if the host's name determines it. Gloo's
data connections use the same interface, with ports that the processes exchange through the server.
"""

import hmac
import os
import socket
import threading
from collections.abc import Sequence
from typing import Any

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import SECRET
from scalestudy.engines.rendezvous import exchange_within, interface_of, meeting_address
from scalestudy.util.errors import RunError, UserError

IDENTITY = (
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE",
    "HOROVOD_HOSTNAME",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR",
    "HOROVOD_GLOO_RENDEZVOUS_PORT",
    "HOROVOD_CONTROLLER",
    "HOROVOD_CPU_OPERATIONS",
    "HOROVOD_ELASTIC",
)
"""Variables that give Horovod its rank and hosts. Values left from another run must be removed."""


def join(placement: Placement, *, device: str = "cpu") -> None:
    """Set the environment that Horovod's controller reads. With Gloo, rank 0 also serves the rendezvous.

    Under mpirun MPI is used if Horovod is built with it, otherwise Gloo if the hosts are known.

    Raises:
        UserError: If neither MPI nor a rendezvous server can be used.
        RunError: If rank 0 cannot listen, or does not listen in time.
    """
    for name, value in tuning(device).items():
        os.environ.setdefault(name, value)
    for name in IDENTITY:
        # Left from an outer run, they would give this process another's rank.
        os.environ.pop(name, None)
    # Only mpirun starts processes that MPI can join; in a step of Slurm, MPI_Init may abort.
    if placement.source == "openmpi" and mpi_built():
        os.environ["HOROVOD_CONTROLLER"] = "mpi"
        return
    if placement.size > 1:
        _check(placement)
    os.environ.update(gloo_environment(placement))
    if placement.size > 1:
        _meet(placement)


def tuning(device: str) -> dict[str, str]:
    """Return the Horovod settings that apply unless the user sets them.

    Group fusion is disabled: if timing decided which buckets are fused, the order of sums would vary. On CPUs
    the cycle time of Horovod's thread is longer, since its default of 1 ms takes a tenth of a core, which
    costs a worker on one core more than the longer wait. A GPU worker has cores to spare and would only wait
    longer. Gloo's default timeout of 30 s is too short for ranks that import a framework from a cold file
    system.
    """
    values = {
        "HOROVOD_DISABLE_GROUP_FUSION": "1",
        "HOROVOD_GLOO_TIMEOUT_SECONDS": f"{exchange_within():.0f}",
    }
    if device != "gpu":
        values["HOROVOD_CYCLE_TIME"] = "2.5"
    return values


def mpi_built() -> bool:
    """Return whether Horovod is built with MPI, without starting either."""
    import horovod.tensorflow as hvd

    return bool(hvd.mpi_built())


def gloo_environment(placement: Placement) -> dict[str, str]:
    """Return the variables that Gloo's controller reads.

    Horovod's cross communicator joins the processes with the same local rank on all nodes that have it, so
    on uneven nodes its ranks differ from node ranks.
    """
    hosts = placement.hosts
    local_rank = placement.local_rank
    cross = [node for node in dict.fromkeys(hosts) if hosts.count(node) > local_rank]
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


def _meet(placement: Placement) -> None:
    port = placement.port
    secret = os.environ.pop(SECRET, "")
    assert port is not None
    if not secret:
        raise UserError(
            f"a secret in {SECRET}, by which the processes of the run recognise each other",
            "none",
            "Start the workers with scalestudy: their launcher or the run's folder holds it.",
        )
    address = meeting_address(placement)
    interface = interface_of(placement, address)
    os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = advertise(address, port, secret)
    os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"] = str(port)
    # Set only where Gloo would choose wrongly, so that a user's own setting stands.
    if interface:
        os.environ.setdefault("HOROVOD_GLOO_IFACE", interface)
    if placement.rank:
        return
    try:
        server = rendezvous_server(placement.hosts, address, port, secret)
    except OSError as error:
        raise RunError(
            f"port {port} of {socket.gethostname()} ({address}) to be free for Horovod's rendezvous",
            str(error),
            "Stop the program that listens there (`ss -ltnp`), or start again: another job gets another"
            " port.",
        ) from error
    threading.Thread(
        target=server.serve_forever,
        name="rendezvous",
        daemon=True,
    ).start()


def _check(placement: Placement) -> None:
    if all(placement.hosts) and placement.port is not None:
        return
    lacking = "there is no port"
    if not all(placement.hosts):
        lacking = "the hosts are unknown"
    action = "Start it with `scalestudy run`, or name a free port in MASTER_PORT."
    if placement.source == "openmpi":
        action = (
            "Build Horovod with MPI (MPI=1 environments/build-horovod.sh), start the workers with srun, or"
            " let mpirun fill node after node and name a free port in MASTER_PORT."
        )
    raise UserError(
        "a place for Horovod's processes to meet: MPI, or the host of every rank and a port",
        f"a Horovod without MPI, and {lacking} (from {placement.source})",
        action,
    )


def rendezvous_server(
    hosts: Sequence[str],
    address: str,
    port: int,
    secret: str,
) -> Any:
    """Return the rendezvous server of Gloo's processes at this address, which requires the secret.

    Horovod's client does not sign requests (`horovod/common/gloo/http_store.h`), though its Python parts
    could. So the secret is the first part of every path (see `advertise`), not encrypted on the
    network.

    Raises:
        OSError: If it cannot listen there.
    """
    # Private parts of Horovod (known in 0.28.1).
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    prefix = f"/{secret}:{port}/".encode()

    class Guarded(RendezvousHandler):  # type: ignore[misc]
        """Rejects requests without the secret, before it reads their body."""

        path: str

        def parse_request(self) -> bool:
            if not super().parse_request():
                return False
            received = self.path.encode("utf-8", "surrogateescape")
            scope_and_key = self.path[len(prefix) :]
            # In constant time: how long it takes does not tell how much of a guess is right.
            if not hmac.compare_digest(received[: len(prefix)], prefix):
                self.send_error(403)
                return False
            # The other methods, inherited from Python's file server, would expose the working folder.
            plain = scope_and_key.count("/") == 1
            if self.command not in ("GET", "PUT", "DELETE") or not plain:
                self.send_error(400)
                return False
            self.path = f"/{scope_and_key}"
            return True

    server = RendezvousHTTPServer((address, port), Guarded, 0)
    counts = {host: hosts.count(host) for host in hosts}
    slots = ",".join(f"{host}:{count}" for host, count in counts.items())
    server.init(get_host_assignments(parse_hosts(slots), len(hosts)))
    return server


def advertise(address: str, port: int, secret: str) -> str:
    """Return the HOROVOD_GLOO_RENDEZVOUS_ADDR with which Horovod's client sends the secret.

    The client requests http://ADDR:PORT/SCOPE/KEY and parses the part before the first slash as host and
    port.
    """
    return f"{address}:{port}/{secret}"
