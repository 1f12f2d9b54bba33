"""From one rank to another: does its name resolve, does its port connect, and what time is it there?"""

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from typing import TypeVar

PINGS = 5
Value = TypeVar("Value")


class Responder:
    """Answers each line that reaches its port with its rank and the time, until it is closed.

    Args:
        rank: Rank to tell.
        port: Port on all interfaces; 0 for any free one.

    Raises:
        OSError: If the port is taken.
    """

    def __init__(self, rank: int, port: int) -> None:
        self._rank = rank
        if socket.has_dualstack_ipv6():
            self._socket = socket.create_server(
                ("", port), family=socket.AF_INET6, backlog=256, dualstack_ipv6=True
            )
        else:
            self._socket = socket.create_server(("", port), backlog=256)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, name=f"listen-{self.port}", daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.settimeout(60)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in connection.makefile("rb"):
                connection.sendall(f"scalestudy {self._rank} {time.time()!r}\n".encode())

    def close(self) -> None:
        """Free the port."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()


def reach(host: str, port: int, rank: int, limit: float) -> float | str:
    """Connect to a rank's responder.

    Returns:
        Its clock minus ours in seconds, from the quickest of a few pings (as NTP does); or why not.
    """
    try:
        with socket.create_connection((host, port), timeout=limit) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(limit)
            answers = connection.makefile("rb")
            best = (float("inf"), 0.0)
            for _ in range(PINGS):
                sent = time.time()
                connection.sendall(b"time\n")
                words = answers.readline().decode(errors="replace").split()
                back = time.time()
                if words[:2] != ["scalestudy", str(rank)]:
                    return f"something else answers there ({' '.join(words)[:40]!r})"
                best = min(best, (back - sent, float(words[2]) - (sent + back) / 2))
    except TimeoutError:
        return f"no answer within {limit:g} s"
    except OSError as error:
        return error.strerror or str(error)
    return best[1]


def addresses(host: str, limit: float) -> list[str] | str:
    """IPv4 and IPv6 addresses of a name, or why there are none."""
    found = limited(lambda: _look_up(host), limit)
    return f"no answer within {limit:g} s" if found is None else found


def _look_up(host: str) -> list[str] | str:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return error.strerror or str(error)
    return list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))


def limited(work: Callable[[], Value], limit: float) -> Value | None:
    """What `work` gives, or None after `limit` seconds; a call that hangs is left behind."""
    future: Future[Value] = Future()

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    try:
        return future.result(limit)
    except Late:
        return None


def side_by_side(works: list[Callable[[], Value]]) -> list[Value]:
    """All of them at once, a few dozen at most."""
    with ThreadPoolExecutor(32) as pool:
        return list(pool.map(lambda work: work(), works))
