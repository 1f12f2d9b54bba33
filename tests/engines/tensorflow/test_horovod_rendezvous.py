"""How Horovod's processes meet, whom their server answers, and where they sum."""

import http.client
import os
import socket

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.placement import Placement
from scalestudy.engines.tensorflow import horovod_rendezvous as rendezvous
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.util.errors import RunError, UserError

SECRET = "0123abcd" * 8
TUNED = [name.removeprefix("HOROVOD_") for name in rendezvous.tuning("cpu")]


def place(rank: int, counts: list[int], **changes) -> Placement:
    nodes = [node for node, count in enumerate(counts) for _ in range(count)]
    values = {
        "local_rank": nodes[:rank].count(nodes[rank]),
        "local_size": counts[nodes[rank]],
        "node_rank": nodes[rank],
        "hosts": tuple(f"n{node}" for node in nodes),
        "source": "slurm",
        "port": 20000,
    }
    return Placement(rank, len(nodes), **{**values, **changes})


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    """Unset Horovod's variables for a test and restore them afterwards."""
    for name in (*rendezvous.IDENTITY, "HOROVOD_GLOO_IFACE", *rendezvous.tuning("cpu")):
        monkeypatch.setenv(name, "before")
        monkeypatch.delenv(name)
    monkeypatch.setenv("SCALESTUDY_SECRET", SECRET)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_the_groups_are_those_that_horovods_own_launcher_would_make(counts):
    hosts = pytest.importorskip("horovod.runner.common.util.hosts")
    slots = hosts.parse_hosts(
        ",".join(f"n{node}:{count}" for node, count in enumerate(counts))
    )
    for slot in hosts.get_host_assignments(slots, sum(counts)):
        placed = place(slot.rank, counts, hosts=tuple(place(0, counts).hosts))
        names = ("LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
        found = rendezvous.gloo_environment(placed)
        ours = [int(found[f"HOROVOD_{name}"]) for name in names]
        assert ours == [
            slot.local_rank,
            slot.local_size,
            slot.cross_rank,
            slot.cross_size,
        ]


@pytest.mark.parametrize(
    ("before", "placed", "device", "expected"),
    [
        (  # what another run left behind is not believed
            {"RANK": "3", "ELASTIC": "1", "GLOO_RENDEZVOUS_ADDR": "elsewhere"},
            place(0, [1]),
            "cpu",
            {"RANK": "0", "ELASTIC": None, "GLOO_RENDEZVOUS_ADDR": None},
        ),
        # the cycle is changed on CPUs alone, and no group is fused with another
        ({}, place(0, [1]), "cpu", {"CYCLE_TIME": "2.5", "DISABLE_GROUP_FUSION": "1"}),
        ({}, place(0, [1]), "gpu", {"CYCLE_TIME": None, "DISABLE_GROUP_FUSION": "1"}),
        # what the user says stays
        *(({name: "0"}, place(0, [1]), "cpu", {name: "0"}) for name in TUNED),
    ],
)
def test_horovods_variables_are_those_of_the_run_and_of_the_user(
    monkeypatch, before, placed, device, expected
):
    for name, value in before.items():
        monkeypatch.setenv(f"HOROVOD_{name}", value)
    rendezvous.join(placed, device=device)
    assert {name: os.environ.get(f"HOROVOD_{name}") for name in expected} == expected


@pytest.mark.parametrize(("limit", "seconds"), [(None, "1260"), ("90.0", "240")])
def test_gloo_waits_longer_than_a_run_may_be_without_progress(
    monkeypatch, limit, seconds
):
    monkeypatch.delenv("SCALESTUDY_PROGRESS_TIMEOUT", raising=False)
    if limit:
        monkeypatch.setenv("SCALESTUDY_PROGRESS_TIMEOUT", limit)
    rendezvous.join(place(0, [1]))
    assert os.environ["HOROVOD_GLOO_TIMEOUT_SECONDS"] == seconds


@pytest.mark.parametrize(
    ("placed", "error", "words"),
    [
        (place(0, [2], port=None), UserError, "there is no port"),
        (
            place(1, [1, 1], hosts=("node.invalid", "n1")),
            RunError,
            r"no address of node\.invalid",
        ),
    ],
)
def test_where_processes_cannot_meet_the_reason_is_named(placed, error, words):
    with pytest.raises(error, match=words):
        rendezvous.join(placed)


@pytest.mark.engine
def test_without_mpi_and_hosts_the_ways_out_are_named():
    pytest.importorskip("horovod.tensorflow")
    if rendezvous.mpi_built():
        pytest.skip("this Horovod is built with MPI")
    with pytest.raises(UserError, match=r"hosts are unknown.*MPI=1.*srun"):
        rendezvous.join(
            place(0, [1, 1], hosts=("", ""), source="openmpi", node_rank=None)
        )


def test_a_port_in_use_is_named():
    pytest.importorskip("horovod.runner")
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=rf"port {port} of .*127\.0\.0\.1"):
            rendezvous.join(place(0, [2], port=port))


@pytest.mark.parametrize("named", [None, "ib0"])
def test_processes_of_one_node_meet_on_the_loopback_unless_the_site_names_an_interface(
    monkeypatch, named
):
    pytest.importorskip("horovod.runner")
    if named:
        monkeypatch.setenv("HOROVOD_GLOO_IFACE", named)
    rendezvous.join(place(0, [2], port=_free_port()))
    assert os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"].startswith("127.0.0.1:")
    assert os.environ["HOROVOD_GLOO_IFACE"].startswith(named or "lo")


@pytest.fixture(scope="module")
def served():
    """The port of a rendezvous of two ranks on this machine, in which rank 0 has stored a key."""
    pytest.importorskip("horovod.runner")
    port, before = _free_port(), dict(os.environ)
    os.environ["SCALESTUDY_SECRET"] = SECRET
    try:
        rendezvous.join(place(0, [2], port=port))
        told = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"]
    finally:  # workers of later tests would inherit rank 0's variables
        os.environ.clear()
        os.environ.update(before)
    assert ask(port, "PUT", f"{own(told, port)}global/0", b"rank 0 is here")[0] == 200
    return port, told


def own(told: str, port: int) -> str:
    """Return the path that Horovod's client requests: it appends the port, a scope and a key."""
    return "/" + f"{told}:{port}/".partition("/")[2]


def ask(
    port: int, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "POST"])
def test_an_outsider_neither_reads_nor_writes_nor_deletes(served, method):
    port, told = served
    secrets = ("0" * 64, SECRET[:-1], SECRET.upper(), f"../{SECRET}")
    guesses = [f"/{secret}:{port}/global/0" for secret in secrets]
    for path in ("/global/0", "/", "//", f"/{'x' * 5000}/global/0", *guesses):
        status, body = ask(port, method, path, b"planted")
        assert status == 403 and b"rank 0" not in body, path
    assert ask(port, "GET", f"{own(told, port)}global/0") == (200, b"rank 0 is here")


def test_the_servers_folder_is_shown_to_nobody_not_even_with_the_secret(served):
    port, told = served
    assert ask(port, "HEAD", f"{own(told, port)}pyproject.toml")[0] == 400
    assert ask(port, "HEAD", f"{own(told, port)}tests/support/lanes.py")[0] == 400
    assert ask(port, "GET", f"{own(told, port)}a/b/c")[0] == 400


def test_who_has_the_secret_reads_writes_and_deletes(served):
    port, told = served
    path = f"{own(told, port)}further/key"
    assert ask(port, "GET", path)[0] == 404
    assert ask(port, "PUT", path, b"value")[0] == 200
    assert ask(port, "GET", path) == (200, b"value")
    assert ask(port, "DELETE", path)[0] == 200
    assert ask(port, "GET", path)[0] == 404


def test_on_one_node_it_listens_at_the_loopback_alone(served):
    port, _ = served
    listening = [
        each.laddr.ip
        for each in psutil.Process().net_connections("inet")
        if each.status == "LISTEN" and each.laddr.port == port
    ]
    assert listening == ["127.0.0.1"]


def test_without_a_secret_nobody_meets_and_no_child_of_a_worker_is_told_it():
    pytest.importorskip("horovod.runner")
    rendezvous.join(place(0, [2], port=_free_port()))
    assert "SCALESTUDY_SECRET" not in os.environ
    with pytest.raises(UserError, match="SCALESTUDY_SECRET"):
        rendezvous.join(place(0, [2], port=_free_port()))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


@pytest.mark.engine
@pytest.mark.skipif(not horovod_built(), reason="Horovod is not built here")
def test_what_lies_in_host_memory_is_summed_there_wherever_the_process_computes(
    framework, monkeypatch
):
    """With NCCL, processes that share a GPU by mistake could not report it to each other."""
    from scalestudy.engines.tensorflow import horovod

    places = []

    def allreduce(tensor, **how):
        total = tensor + tensor  # placed where Horovod's operation would be
        places.append((tensor.device[-5:], total.device[-5:]))
        return total

    monkeypatch.setattr(horovod.hvd, "allreduce", allreduce)
    with framework.device("CPU:1"):  # like a GPU as the default device
        total = horovod.HorovodGroup(0, 2).host_sum(np.array([3, 4], np.int64))
    assert total.tolist() == [6, 8]
    assert places == [("CPU:0", "CPU:0")]
