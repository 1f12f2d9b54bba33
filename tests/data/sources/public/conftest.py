"""A local web server for the tests."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests


@dataclass
class Site:
    """Files by path; `asked` lists the requested paths."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        content = self.site.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server that replaces the web: every URL is requested from it as /HOST/PATH."""
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OfSite", (Handler,), {"site": site}))
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # for connections that the client closed
    get = requests.get
    address = f"http://127.0.0.1:{server.server_port}/"
    monkeypatch.setattr(requests, "get", lambda url, **keys: get(address + url.partition("://")[2], **keys))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield site
    server.shutdown()
    thread.join()
    server.server_close()
