import json
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.resolve import resolve
from scalestudy.engines.tensorflow.traits import tf_config
from scalestudy.util.errors import UserError


def torchrun(rank: int, size: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "20000",
    }


def openmpi(rank: int, size: int) -> dict[str, str]:
    names = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank, "LOCAL_SIZE": size}
    return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in names.items()}


def test_a_process_started_alone_is_rank_0_of_1():
    assert resolve({}) == Placement(0, 1, 0, 1, 0, (socket.gethostname(),), "alone")


@given(
    st.integers(1, 64).flatmap(
        lambda size: st.tuples(st.integers(0, size - 1), st.just(size))
    )
)
def test_torchruns_variables_are_read(place):
    rank, size = place
    found = resolve(torchrun(rank, size))
    assert (found.rank, found.size, found.local_rank, found.port) == (
        rank,
        size,
        rank,
        20000,
    )
    assert found.hosts == ("localhost",) * size


def test_mpiruns_variables_are_read():
    found = resolve(openmpi(1, 2))
    assert (found.rank, found.size, found.source) == (1, 2, "openmpi")


def test_torchrun_over_several_nodes_names_the_first_alone():
    node = {"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "n1"}
    found = resolve(torchrun(1, 2) | node | {"GROUP_RANK": "1"})
    assert (found.local_rank, found.local_size, found.node_rank) == (0, 1, 1)
    assert found.hosts == ("n1", "")
    with pytest.raises(UserError, match="GROUP_RANK"):
        resolve(torchrun(0, 2) | node)


def captured(launcher: str) -> list[dict[str, str]]:
    """Environments of 5 processes that the launcher started on 3 nodes of a real cluster."""
    return json.loads((Path(__file__).parent / "captured.json").read_text())[launcher]


BLOCKS = ("node1", "node1", "node2", "node2", "node3")


@pytest.mark.parametrize("launcher", ["srun", "srun pmix", "srun pmi2", "mpirun"])
def test_all_processes_of_a_launcher_see_one_run(launcher):
    places = [resolve(environment) for environment in captured(launcher)]
    assert [place.rank for place in places] == [0, 1, 2, 3, 4]
    assert [place.local_rank for place in places] == [0, 1, 0, 1, 0]
    assert [place.local_size for place in places] == [2, 2, 2, 2, 1]
    assert [place.node_rank for place in places] == [0, 0, 1, 1, 2]
    assert {(place.size, place.hosts, place.port) for place in places} == {
        (5, BLOCKS, 20064)
    }
    assert {place.source for place in places} == {
        "openmpi" if launcher == "mpirun" else "slurm"
    }


def test_under_another_mapping_of_mpirun_hosts_are_unknown_rather_than_wrong():
    places = [resolve(environment) for environment in captured("mpirun by node")]
    assert [place.rank for place in places] == [0, 1, 2, 3, 4]
    assert [place.hosts for place in places[1:4]] == [("",) * 5] * 3


def test_a_step_of_one_task_is_alone_in_it():
    (environment,) = captured("srun alone")
    place = resolve(environment)
    assert (place.rank, place.size, place.hosts, place.source) == (
        0,
        1,
        ("node1",),
        "slurm",
    )


SRUN, ALONE = captured("srun"), captured("srun alone")[0]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (torchrun(1, 2) | openmpi(0, 2), "from torchrun, rank 0 of 2 from openmpi"),
        (SRUN[3] | openmpi(0, 1), "rank 0 of 1 from openmpi, rank 3 of 5 from slurm"),
        *(
            (torchrun(0, 2) | {"WORLD_SIZE": value}, "WORLD_SIZE")
            for value in ("", "two", "-1", "1.5")
        ),
        (
            {
                name: value
                for name, value in torchrun(0, 2).items()
                if name != "LOCAL_RANK"
            },
            "LOCAL_RANK",
        ),
    ],
)
def test_variables_that_contradict_each_other_or_are_no_numbers_are_refused_by_name(
    environment, message
):
    with pytest.raises(UserError, match=message):
        resolve(environment)


@pytest.mark.parametrize(
    ("environment", "source"),
    [
        (torchrun(1, 2) | openmpi(1, 2), "torchrun"),  # two that agree
        (ALONE | torchrun(1, 2), "torchrun"),  # a local run in a step of its own
        (captured("batch script")[0], "alone"),
        (
            ALONE | {"SLURM_STEP_ID": str(0xFFFFFFFA)},
            "alone",
        ),  # an interactive shell of a job
    ],
)
def test_of_several_launchers_variables_those_of_the_innermost_count(
    environment, source
):
    assert resolve(environment).source == source


def test_gpus_that_slurm_grants_on_the_node_are_known():
    assert resolve(captured("srun")[3] | {"SLURM_GPUS_ON_NODE": "2"}).gpus == 2
    assert resolve(captured("srun")[3]).gpus is None


def test_mpirun_on_one_machine_knows_its_host_and_takes_a_port_that_all_its_ranks_know():
    places = [
        resolve(openmpi(rank, 2) | {"PMIX_NAMESPACE": "77", "PMIX_RANK": str(rank)})
        for rank in (0, 1)
    ]
    assert {place.hosts for place in places} == {("localhost", "localhost")}
    assert len({place.port for place in places}) == 1
    assert 20000 <= places[0].port < 32000


def test_mpirun_over_several_machines_without_slurm_does_not_know_its_hosts():
    place = resolve(openmpi(1, 4) | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"})
    assert place.hosts == ("",) * 4
    assert place.node_rank is None


def test_tf_config_gives_each_worker_a_port_of_its_own():
    config = json.loads(tf_config(resolve(torchrun(1, 3))))
    assert config["cluster"] == {
        "worker": ["localhost:20000", "localhost:20001", "localhost:20002"]
    }
    assert config["task"] == {"type": "worker", "index": 1}


def test_tf_config_over_nodes_names_hosts_and_counts_ports_on_each():
    configs = [
        json.loads(tf_config(resolve(environment))) for environment in captured("srun")
    ]
    workers = [
        "node1:20064",
        "node1:20065",
        "node2:20064",
        "node2:20065",
        "node3:20064",
    ]
    assert [config["cluster"]["worker"] for config in configs] == [workers] * 5
    assert [config["task"]["index"] for config in configs] == [0, 1, 2, 3, 4]
