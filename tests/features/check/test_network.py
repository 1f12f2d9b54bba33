"""Reaching another rank, over real sockets."""

import socket
import threading

import pytest

from scalestudy.features.check.network import Responder, addresses, limited, reach, side_by_side


@pytest.fixture
def responder():
    found = Responder(3, 0)
    yield found
    found.close()


@pytest.fixture
def silent():
    """Takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def other():
    """A service of another kind."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            connection.recv(100)

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.close()


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_rank_is_reached(responder):
    assert reach("localhost", responder.port, 3, 5) == ""


def test_it_is_reached_by_many_at_once(responder):
    found = side_by_side([lambda: reach("127.0.0.1", responder.port, 3, 30)] * 40)
    assert found == [""] * 40


def test_a_port_that_nobody_listens_at_is_refused():
    assert "refused" in reach("127.0.0.1", closed_port(), 0, 5)


def test_a_port_that_was_closed_is_free_again(responder):
    responder.close()
    assert "refused" in reach("127.0.0.1", responder.port, 3, 5)
    Responder(4, responder.port).close()


def test_one_that_does_not_answer_ends_with_the_limit(silent):
    assert reach("127.0.0.1", silent, 0, 0.2) == "no answer within 0.2 s"


def test_another_service_at_the_port_is_quoted(other):
    assert "SSH-2.0" in reach("127.0.0.1", other, 0, 5)


def test_another_rank_at_the_port_is_told_apart(responder):
    assert "something else answers" in reach("127.0.0.1", responder.port, 2, 5)


def test_a_taken_port_is_an_error(responder):
    with pytest.raises(OSError, match="in use"):
        Responder(0, responder.port)


def test_a_name_resolves_or_says_why_not():
    assert "127.0.0.1" in addresses("localhost", 10)
    assert isinstance(addresses("no-such-host.invalid", 10), str)


def test_a_call_that_hangs_is_left_behind():
    never = threading.Event()
    assert limited(never.wait, 0.1) is None
    never.set()


def test_an_error_within_a_limit_is_raised():
    with pytest.raises(ZeroDivisionError):
        limited(lambda: 1 / 0, 10)
