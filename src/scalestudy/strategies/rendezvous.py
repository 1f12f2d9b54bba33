"""Where Horovod's processes find each other, held by rank 0: no horovodrun, no ssh."""

import os
import socket
import threading
import time

from scalestudy.cluster.placement import Placement
from scalestudy.errors import RunError, UserError

WAIT = 120.0
"""Seconds that a rank waits for rank 0 to listen."""


def join(placement: Placement) -> None:
    """Set the environment that Horovod's Gloo controller reads; rank 0 also serves the rendezvous.

    Under mpirun nothing is done: MPI brings its own.

    Raises:
        UserError: If there is no port to meet at.
        RunError: If rank 0 does not listen in time.
    """
    if placement.source == "openmpi":
        return
    os.environ.update(_gloo(placement))
    # Between steps, Horovod's thread asks all ranks every millisecond whether there is work: a tenth of
    # a core. A worker on one core feels that more than the longer wait.
    os.environ.setdefault("HOROVOD_CYCLE_TIME", "2.5")
    if placement.size == 1:
        return
    if placement.port is None:
        raise UserError(
            "a port for Horovod's rendezvous (MASTER_PORT)",
            f"none (from {placement.source})",
            "Start it with `scalestudy run`.",
        )
    if placement.rank == 0:
        _serve(placement)
    else:
        _await(placement.hosts[0], placement.port)


def _gloo(placement: Placement) -> dict[str, str]:
    local = len(set(placement.hosts)) == 1 and placement.hosts[0] in ("localhost", "127.0.0.1")
    nodes = list(dict.fromkeys(placement.hosts))
    settings = {
        "HOROVOD_HOSTNAME": placement.hosts[placement.rank],
        "HOROVOD_RANK": str(placement.rank),
        "HOROVOD_SIZE": str(placement.size),
        "HOROVOD_LOCAL_RANK": str(placement.local_rank),
        "HOROVOD_LOCAL_SIZE": str(placement.local_size),
        "HOROVOD_CROSS_RANK": str(placement.node_rank),
        "HOROVOD_CROSS_SIZE": str(len(nodes)),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }
    if placement.size > 1:
        address = socket.gethostbyname(placement.hosts[0])
        settings |= {
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": address,
            "HOROVOD_GLOO_RENDEZVOUS_PORT": str(placement.port),
        }
        if local:
            settings["HOROVOD_GLOO_IFACE"] = "lo"
    return settings


def _serve(placement: Placement) -> None:
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    counts: dict[str, int] = {}
    for host in placement.hosts:
        counts[host] = counts.get(host, 0) + 1
    server = RendezvousHTTPServer(("", placement.port), RendezvousHandler, 0)
    hosts = ",".join(f"{host}:{count}" for host, count in counts.items())
    server.init(get_host_assignments(parse_hosts(hosts), placement.size))
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
