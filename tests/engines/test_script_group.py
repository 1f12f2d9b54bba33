"""Processes of a script that exchange small values by authenticated sockets."""

import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import SECRET, new_secret
from scalestudy.cluster.resolve import PROGRESS_TIMEOUT
from scalestudy.engines import script_group
from scalestudy.engines.script_group import OneProcess, SecretGroup
from scalestudy.launch.reserve import ports
from scalestudy.util.errors import RunError, UserError


def place(rank, port, size=3):
    return Placement(rank, size, rank, size, 0, ("localhost",) * size, "torchrun", port)


@pytest.fixture
def first(monkeypatch):
    """A group of three on rank 0, and its port."""
    monkeypatch.setattr(script_group, "_held", [])
    monkeypatch.setenv(SECRET, new_secret())
    with ports(4) as port:
        yield SecretGroup(place(0, port)), port


def test_values_go_to_the_first_and_from_it(first):
    group, port = first
    others = [SecretGroup(place(rank, port)) for rank in (2, 1)]
    assert [one.to_first({"rank": one.rank}) for one in others] == [None, None]
    assert group.to_first("mine") == ["mine", {"rank": 1}, {"rank": 2}]
    assert group.share_object([1.5, None]) == [1.5, None]
    assert [one.share_object("ignored") for one in others] == [[1.5, None]] * 2


def test_a_process_without_the_secret_is_not_heard(first):
    group, port = first
    with pytest.raises(AuthenticationError):
        Client(("127.0.0.1", port + 3), authkey=b"guessed")
    SecretGroup(place(1, port)).to_first("one")
    SecretGroup(place(2, port)).to_first("two")
    assert group.to_first("mine") == ["mine", "one", "two"]


def test_a_worker_that_never_comes_and_one_that_has_gone_are_named(first, monkeypatch):
    group, port = first
    SecretGroup(place(1, port)).to_first("one")
    monkeypatch.setenv(PROGRESS_TIMEOUT, "0.2")
    with pytest.raises(RunError, match="rank 2"):
        group.to_first("mine")
    gone = threading.Thread(target=lambda: SecretGroup(place(2, port)))
    gone.start()
    gone.join()
    with pytest.raises(RunError, match=r"rank [12]"):
        group.to_first("mine")


def test_processes_without_a_launcher_have_no_secret(monkeypatch):
    monkeypatch.setattr(script_group, "_held", [])
    monkeypatch.delenv(SECRET, raising=False)
    with pytest.raises(UserError, match="scalestudy launch"):
        SecretGroup(place(0, 20_000))
    alone = OneProcess()
    assert (alone.share_object(3), alone.to_first(4)) == (3, [4])
