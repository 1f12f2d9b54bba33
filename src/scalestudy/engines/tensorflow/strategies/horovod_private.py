"""All uses of private parts of Horovod (known in 0.28.1)."""

import hmac
from collections.abc import Sequence
from typing import Any

from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer


def rendezvous_server(hosts: Sequence[str], address: str, port: int, secret: str) -> Any:
    """Return the rendezvous server of Gloo's processes at this address, which requires the secret.

    Horovod's client does not sign requests (`horovod/common/gloo/http_store.h`), though its Python parts
    could. So the secret is the first part of every path (see `advertised_address`), not encrypted on the
    network.

    Raises:
        OSError: If it cannot listen there.
    """
    server = RendezvousHTTPServer((address, port), _Guarded, 0)
    server.prefix = f"/{secret}:{port}/".encode()
    counts = {host: hosts.count(host) for host in hosts}
    slots = ",".join(f"{host}:{count}" for host, count in counts.items())
    server.init(get_host_assignments(parse_hosts(slots), len(hosts)))
    return server


def advertised_address(address: str, port: int, secret: str) -> str:
    """Return the HOROVOD_GLOO_RENDEZVOUS_ADDR with which Horovod's client sends the secret.

    The client requests http://ADDR:PORT/SCOPE/KEY and parses the part before the first slash as host and
    port.
    """
    return f"{address}:{port}/{secret}"


class _Guarded(RendezvousHandler):  # type: ignore[misc]
    """Rejects requests without the secret, before it reads their body."""

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
        # The other methods, inherited from Python's file server, would expose the working folder.
        if self.command not in ("GET", "PUT", "DELETE") or scope_and_key.count("/") != 1:
            self.send_error(400)
            return False
        self.path = f"/{scope_and_key}"
        return True
