"""What we use of Horovod that it does not promise to keep; nowhere else. Known in 0.28.1."""

from collections.abc import Sequence
from typing import Any

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer


def rendezvous_server(hosts: Sequence[str], port: int) -> Any:
    """The server by which Gloo's processes find each other, listening at `port` and ready to serve.

    Args:
        hosts: Of every rank.
        port: Where it listens.

    Raises:
        OSError: If it cannot listen there.
    """
    server = RendezvousHTTPServer(("", port), RendezvousHandler, 0)
    counts = {host: hosts.count(host) for host in hosts}
    slots = ",".join(f"{host}:{count}" for host, count in counts.items())
    server.init(get_host_assignments(parse_hosts(slots), len(hosts)))
    return server
