import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.placement import Placement
from scalestudy.errors import RunError, UserError
from scalestudy.strategies import rendezvous


def place(rank: int, counts: list[int], **changes) -> Placement:
    nodes = [node for node, count in enumerate(counts) for _ in range(count)]
    values = {
        "local_rank": nodes[:rank].count(nodes[rank]), "local_size": counts[nodes[rank]],
        "node_rank": nodes[rank], "hosts": tuple(f"n{node}" for node in nodes), "source": "slurm",
        "port": 20000,
    }  # fmt: skip
    return Placement(rank, len(nodes), **{**values, **changes})


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    """The variables of Horovod as they were before, whatever a test does to them."""
    for name in (*rendezvous.IDENTITY, "HOROVOD_GLOO_IFACE", "HOROVOD_CYCLE_TIME"):
        monkeypatch.setenv(name, "before")
        monkeypatch.delenv(name)


@pytest.fixture
def _names(monkeypatch):
    monkeypatch.setattr(socket, "gethostbyname", lambda host: f"10.0.0.{host[1:]}")


@pytest.mark.usefixtures("_names")
def test_uneven_nodes_have_a_cross_rank_among_the_nodes_that_hold_their_local_rank():
    found = [rendezvous.gloo_environment(place(rank, [1, 3, 2])) for rank in range(6)]
    assert [each["HOROVOD_LOCAL_RANK"] for each in found] == ["0", "0", "1", "2", "0", "1"]
    assert [each["HOROVOD_LOCAL_SIZE"] for each in found] == ["1", "3", "3", "3", "2", "2"]
    assert [each["HOROVOD_CROSS_RANK"] for each in found] == ["0", "1", "0", "0", "2", "1"]
    assert [each["HOROVOD_CROSS_SIZE"] for each in found] == ["3", "3", "2", "1", "3", "2"]
    assert {each["HOROVOD_GLOO_RENDEZVOUS_ADDR"] for each in found} == {"10.0.0.0"}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_the_groups_are_those_that_horovods_own_launcher_would_make(counts):
    hosts = pytest.importorskip("horovod.runner.common.util.hosts")
    slots = hosts.parse_hosts(",".join(f"n{node}:{count}" for node, count in enumerate(counts)))
    for slot in hosts.get_host_assignments(slots, sum(counts)):
        placed = place(slot.rank, counts, hosts=tuple(place(0, counts).hosts))
        names = ("LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket, "gethostbyname", lambda _: "10.0.0.1")
            found = rendezvous.gloo_environment(placed)
        ours = [int(found[f"HOROVOD_{name}"]) for name in names]
        assert ours == [slot.local_rank, slot.local_size, slot.cross_rank, slot.cross_size]


def test_what_another_run_left_behind_is_not_believed(monkeypatch):
    monkeypatch.setenv("HOROVOD_RANK", "3")
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    monkeypatch.setenv("HOROVOD_GLOO_RENDEZVOUS_ADDR", "elsewhere")
    rendezvous.join(place(0, [1]))
    assert os.environ["HOROVOD_RANK"] == "0"
    assert "HOROVOD_ELASTIC" not in os.environ
    assert "HOROVOD_GLOO_RENDEZVOUS_ADDR" not in os.environ


def test_horovodrun_has_arranged_everything(monkeypatch):
    monkeypatch.setenv("HOROVOD_RANK", "1")
    rendezvous.join(place(1, [2], source="horovodrun", port=None))
    assert os.environ["HOROVOD_RANK"] == "1"


def test_without_a_port_there_is_nowhere_to_meet():
    with pytest.raises(UserError, match="there is no port"):
        rendezvous.join(place(0, [2], port=None))


@pytest.mark.engine
def test_without_mpi_and_hosts_the_ways_out_are_named():
    pytest.importorskip("horovod.tensorflow")
    if rendezvous.mpi_built():
        pytest.skip("this Horovod is built with MPI")
    with pytest.raises(UserError, match=r"hosts are unknown.*MPI=1.*srun"):
        rendezvous.join(place(0, [1, 1], hosts=("", ""), source="openmpi", node_rank=None))


def test_a_port_in_use_is_named():
    pytest.importorskip("horovod.runner")
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"port {port} of"):
            rendezvous.join(place(0, [2], port=port))


def test_a_host_without_an_address_is_named():
    with pytest.raises(RunError, match=r"an address of node\.invalid"):
        rendezvous.gloo_environment(place(1, [1, 1], hosts=("node.invalid", "n1")))


def test_processes_of_one_node_meet_on_the_loopback():
    pytest.importorskip("horovod.runner")
    rendezvous.join(place(0, [2], port=_free_port()))
    assert os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"] == "127.0.0.1"
    assert os.environ["HOROVOD_GLOO_IFACE"].startswith("lo")


def test_an_interface_that_the_site_names_is_kept(monkeypatch):
    pytest.importorskip("horovod.runner")
    monkeypatch.setenv("HOROVOD_GLOO_IFACE", "ib0")
    rendezvous.join(place(0, [2], port=_free_port()))
    assert os.environ["HOROVOD_GLOO_IFACE"] == "ib0"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
