"""Rank 0 writes its addresses to the run folder; the other ranks use the first that they reach."""

import os
import socket
import threading
from pathlib import Path

import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.private_files import MEETING, forget_addresses, meeting_in
from scalestudy.engines import rendezvous
from scalestudy.engines.rendezvous import (
    find_address,
    interface_of,
    listening,
    meeting_address,
    own_addresses,
)
from scalestudy.util.errors import RunError

NAMES = "first.invalid", "second.invalid"


def place(rank: int, port: int = 20000, hosts: tuple[str, ...] = NAMES) -> Placement:
    return Placement(rank, len(hosts), 0, 1, rank, hosts, "slurm", port)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The folder of a run on two nodes whose names do not resolve."""
    monkeypatch.setenv(MEETING, str(tmp_path))
    monkeypatch.setenv("SCALESTUDY_PROGRESS_TIMEOUT", "20")
    monkeypatch.setattr(
        rendezvous, "addresses_of", lambda host: [host] if host[:1].isdigit() else []
    )
    return tmp_path


@pytest.fixture
def outward(monkeypatch):
    """Set the addresses of this host's interfaces; this machine has only the loopback."""

    def put(*addresses: str) -> None:
        monkeypatch.setattr(rendezvous, "outward_addresses", lambda: list(addresses))

    return put


def reached_by(port: int) -> tuple[threading.Thread, list[str]]:
    """Start another rank, which waits; return its thread and the address that it reaches."""
    reached: list[str] = []
    other = threading.Thread(
        target=lambda: reached.append(meeting_address(place(1, port))), daemon=True
    )
    other.start()
    return other, reached


def test_who_waits_takes_the_address_that_rank_0_tells_once_it_listens_there(
    folder, outward
):
    outward("127.0.0.3")
    port = free_port()
    other, reached = reached_by(port)
    address = meeting_address(place(0, port))
    with listening(address, port):
        other.join(300)
    assert (address, reached) == ("127.0.0.3", ["127.0.0.3"])
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_of_several_it_is_the_first_that_is_reached(folder, outward):
    outward("127.0.0.4", "127.0.0.5")
    port = free_port()
    meeting_address(place(0, port))
    other, reached = reached_by(port)
    with listening("127.0.0.5", port):
        other.join(300)
    assert reached == ["127.0.0.5"]


def test_an_address_that_a_name_tells_is_the_only_one(folder, outward, monkeypatch):
    outward("10.0.0.1", "10.9.0.1")
    monkeypatch.setattr(
        rendezvous, "addresses_of", lambda host: {NAMES[0]: ["10.9.0.1"]}[host]
    )
    assert own_addresses(place(0)) == [meeting_address(place(0))] == ["10.9.0.1"]
    assert [file.read_text() for file in folder.iterdir()] == ["10.9.0.1"]


def test_addresses_that_another_user_could_have_written_are_not_taken(
    folder, outward, monkeypatch
):
    outward("127.0.0.6")
    monkeypatch.setenv("SCALESTUDY_PROGRESS_TIMEOUT", "0")
    port = free_port()
    with listening(meeting_address(place(0, port)), port):
        assert meeting_address(place(1, port)) == "127.0.0.6"
        (file,) = folder.iterdir()
        file.chmod(0o666)
        with pytest.raises(RunError, match=NAMES[0]):
            meeting_address(place(1, port))
        file.rename(folder / "planted")
        file.symlink_to(folder / "planted")
        (folder / "planted").chmod(0o600)
        with pytest.raises(RunError, match=NAMES[0]):
            meeting_address(place(1, port))


def test_without_a_common_folder_names_are_resolved(folder, monkeypatch):
    monkeypatch.delenv(MEETING)
    with pytest.raises(RunError, match=NAMES[0]):  # at once: no rank writes an address
        meeting_address(place(1))
    monkeypatch.setattr(
        rendezvous, "addresses_of", lambda host: ["127.0.1.1", "127.0.0.7"]
    )
    monkeypatch.setenv("SCALESTUDY_PROGRESS_TIMEOUT", "0")
    with pytest.raises(RunError, match="no address"):  # they all belong to this host
        meeting_address(place(1))


def test_a_run_on_one_node_meets_at_the_loopback_and_tells_nothing(
    tmp_path, monkeypatch
):
    monkeypatch.delenv(MEETING, raising=False)
    alone = place(0, hosts=("n1", "n1"))
    with meeting_in(tmp_path, alone):
        assert meeting_address(alone) == "127.0.0.1"
        assert interface_of(alone).startswith("lo")
        assert MEETING not in os.environ
    assert not list(tmp_path.iterdir())


def test_rank_0_leaves_nothing_behind(folder, outward, tmp_path):
    outward("10.0.0.1")
    variables: dict[str, str] = {}
    with meeting_in(folder, place(1), variables):
        meeting_address(place(0))
    assert variables == {MEETING: str(tmp_path)}
    assert len(list(folder.iterdir())) == 1
    with meeting_in(folder, place(0), variables):
        pass
    assert not list(folder.iterdir())
    meeting_address(place(0))
    forget_addresses(folder)
    assert not list(folder.iterdir())


def test_the_interface_of_a_host_without_a_name_is_that_on_the_way_to_rank_0(folder):
    assert interface_of(place(1), "127.0.0.1").startswith("lo")


def test_what_waits_by_itself_is_told_an_address_at_once(outward, monkeypatch):
    outward("10.0.0.1")
    monkeypatch.setattr(
        rendezvous, "addresses_of", lambda host: {NAMES[0]: ["127.0.1.1"]}.get(host, [])
    )
    assert find_address(place(0)) == "10.0.0.1"
    assert find_address(place(1)) == "127.0.1.1"
    with pytest.raises(RunError, match=NAMES[1]):
        find_address(place(1, hosts=(NAMES[1], NAMES[0])))
    assert find_address(place(1, hosts=("n1", "n1"))) == "127.0.0.1"
