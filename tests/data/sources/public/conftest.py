"""A web server of the test's own, whose answers it can spoil, and nothing of the user's own folders."""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from scalestudy.data.sources.public.download import MIRROR


@dataclass
class Site:
    """Files by path. `spoil` may answer itself, and then returns True; `asked` are paths and ranges."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    spoil: Callable[["Handler", bytes, int], bool] = lambda handler, content, number: False
    ranges: bool = True
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over: what hangs until then lets go."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.site.asked.append((self.path, asked))
        content = self.site.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        if self.site.spoil(self, content, len(self.site.asked)):
            return
        self.whole(content, asked)

    def whole(self, content: bytes, asked: str | None) -> None:
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.site.ranges else 0
        if start >= len(content) > 0:
            self.send_error(416)
            return
        self.begin(206 if start else 200, len(content) - start, start, len(content))
        self.wfile.write(content[start:])

    def begin(
        self, status: int, length: int | None, start: int = 0, total: int = 0, kind: str = "application/gzip"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        self.end_headers()

    def hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Site]:
    """A server that stands for the whole web: every address is asked of it, as /HOST/PATH."""
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OfSite", (Handler,), {"site": site}))
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # of connections that the other side has had enough of
    site.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv(MIRROR, site.address)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield site
    site.ended.set()
    server.shutdown()
    thread.join()
    server.server_close()
