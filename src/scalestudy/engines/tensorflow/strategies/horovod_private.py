"""What we use of Horovod that it does not promise to keep; nowhere else. Known in 0.28.1."""

import hmac
from collections.abc import Sequence
from typing import Any

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer


def rendezvous_server(hosts: Sequence[str], address: str, port: int, secret: str) -> Any:
    """The server by which Gloo's processes find each other, at this address, for who knows the secret.

    Horovod's own client signs nothing (`horovod/common/gloo/http_store.h`), though its Python parts could;
    so the secret is the first part of every path (see `told_address`). Who reads what goes over the
    network between the nodes can read it.

    Raises:
        OSError: If it cannot listen there.
    """
    server = RendezvousHTTPServer((address, port), _Guarded, 0)
    server.prefix = f"/{secret}:{port}/".encode()
    counts = {host: hosts.count(host) for host in hosts}
    slots = ",".join(f"{host}:{count}" for host, count in counts.items())
    server.init(get_host_assignments(parse_hosts(slots), len(hosts)))
    return server


def told_address(address: str, port: int, secret: str) -> str:
    """What HOROVOD_GLOO_RENDEZVOUS_ADDR must be for Horovod's client to bring the secret.

    It asks for http://ADDR:PORT/SCOPE/KEY and takes what is before the first slash for host and port.
    """
    return f"{address}:{port}/{secret}"


class _Guarded(RendezvousHandler):  # type: ignore[misc]
    """Hears nobody who does not bring the secret; refuses before a body is read."""

    path: str

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        prefix: bytes = self.server.prefix
        brought = self.path.encode("utf-8", "surrogateescape")
        scope_and_key = self.path[len(prefix) :]
        if not hmac.compare_digest(brought[: len(prefix)], prefix):
            self.send_error(403)
            return False
        # Its other methods, those of Python's server of files, would show the working folder.
        if self.command not in ("GET", "PUT", "DELETE") or scope_and_key.count("/") != 1:
            self.send_error(400)
            return False
        self.path = f"/{scope_and_key}"
        return True
