"""Reaching another rank, over real sockets, and what ports say."""

import socket
import threading

import pytest

from scalestudy.features.check import network
from scalestudy.features.check.mailbox import Facts, RankAnswer
from scalestudy.features.check.network import Responder, reach, side_by_side


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


HOSTS = ["n1", "n1", "n2", "n2"]


def facts(rank, port=20001):
    return Facts(
        rank=rank,
        host=HOSTS[rank],
        local_rank=rank % 2,
        cpus=(0,),
        gpus=0,
        available=1,
        limit=1,
        port=port and port + rank % 2,
    )


ALL = {rank: facts(rank) for rank in range(4)}


def ports(blocked=(), facts=ALL):
    answers = {
        one: RankAnswer(
            rank=one,
            links={
                other: "no answer within 5 s" if (one, other) in blocked else ""
                for other in range(4)
                if other != one
            },
        )
        for one in range(4)
    }
    return network.judge_ports(HOSTS, facts, answers, port=20000)


def test_when_all_connect_it_is_one_line():
    (line,) = ports()
    assert line.status == "pass" and "12 ways" in line.seen


def test_a_blocked_port_fails_naming_the_pair_and_the_port():
    (line,) = ports(blocked=[(1, 2)])
    assert (line.status, line.where) == ("fail", "n1 (rank 1) → n2 (rank 2)")
    assert "port 20001: no answer" in line.seen


def test_of_two_hosts_one_pair_of_ranks_is_named():
    assert len(ports(blocked=[(0, 2), (0, 3), (1, 2), (1, 3)])) == 1


def test_a_port_that_was_taken_is_named_and_is_no_blocked_pair():
    line, *rest = ports(blocked=[(0, 2), (1, 2), (3, 2)], facts=ALL | {2: facts(2, port=None)})
    assert line.seen == "port 20001 is taken" and line.where == "n2"
    assert rest == []
