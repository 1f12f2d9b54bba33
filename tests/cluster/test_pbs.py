"""Ranks in a PBS Professional job, by the variables in the guides of PBS, PALS and MPICH."""

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.resolve import pbs, resolve
from scalestudy.util.errors import UserError

HERE = socket.gethostname()
JOB = {"PBS_JOBID": "1234.pbs01", "PBS_O_WORKDIR": "/home/me", "PBS_QUEUE": "prod"}


def pals(rank: int, size: int, local: int, here: int, nodes: str) -> dict[str, str]:
    return JOB | {
        "PMI_RANK": str(rank),
        "PMI_SIZE": str(size),
        "PMI_LOCAL_RANK": str(local),
        "PMI_LOCAL_SIZE": str(here),
        "PALS_RANKID": str(rank),
        "PALS_LOCAL_RANKID": str(local),
        "SCALESTUDY_NODES": nodes,
    }


def hydra(rank: int, size: int, local: int, here: int, nodes: str) -> dict[str, str]:
    return JOB | {
        "PMI_RANK": str(rank),
        "PMI_SIZE": str(size),
        "MPI_LOCALRANKID": str(local),
        "MPI_LOCALNRANKS": str(here),
        "SCALESTUDY_NODES": nodes,
    }


@given(
    block=st.integers(1, 8),
    nodes=st.integers(2, 6),
    last=st.integers(1, 8),
    launcher=st.sampled_from([pals, hydra]),
    data=st.data(),
)
def test_blocks_fill_one_node_after_another(block, nodes, last, launcher, data):
    last = min(last, block)
    size = block * (nodes - 1) + last
    rank = data.draw(st.integers(0, size - 1))
    node = rank // block
    here = min(block, size - node * block)
    names = [f"x{index}" if index != node else HERE for index in range(nodes)]
    found = resolve(launcher(rank, size, rank - node * block, here, ",".join(names)))
    assert (found.rank, found.size, found.local_rank, found.local_size) == (
        rank,
        size,
        rank - node * block,
        here,
    )
    assert (found.node_rank, found.source) == (node, "pbs")
    assert found.hosts == tuple(names[each // block] for each in range(size))
    assert (
        found.port
        == resolve(
            launcher(rank, size, rank - node * block, here, ",".join(names))
        ).port
    )


def test_one_node_is_this_machine():
    found = resolve(pals(1, 4, 1, 4, ""))
    assert found.hosts == ("localhost",) * 4 and found.node_rank == 0


def test_the_jobs_own_file_of_nodes_does_as_well(tmp_path: Path):
    file = tmp_path / "nodes"
    file.write_text(f"{HERE}.cluster.net\n{HERE}.cluster.net\nx2\nx2\n")
    values = pals(1, 4, 1, 2, "") | {"PBS_NODEFILE": str(file)}
    assert pbs(values).hosts == (f"{HERE}.cluster.net",) * 2 + ("x2",) * 2


def test_the_job_script_itself_and_what_is_no_job_have_no_place_here():
    assert pbs(JOB) is None
    assert pbs({"PMI_RANK": "0", "PMI_SIZE": "1"}) is None
    assert resolve(JOB).source == "alone"


def test_open_mpi_in_a_job_of_pbs_knows_its_hosts():
    values = JOB | {
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "SCALESTUDY_NODES": f"x1,{HERE}",
    }
    found = resolve(values)
    assert (found.source, found.hosts) == ("openmpi", ("x1", "x1", HERE, HERE))
    assert found.port == resolve(values).port is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"PMI_SIZE": "x"}, "PMI_SIZE"),
        ({"SCALESTUDY_NODES": ""}, "of the nodes none"),
        ({"SCALESTUDY_NODES": "x1,x2"}, f"on {HERE}, of the nodes x1, x2"),
        ({"SCALESTUDY_NODES": f"{HERE},x2"}, "ranks in blocks"),
        ({"PMI_LOCAL_SIZE": "1"}, "ranks in blocks"),
        ({"PMI_SIZE": "9"}, "ranks in blocks"),
        (
            {
                "OMPI_COMM_WORLD_RANK": "0",
                "OMPI_COMM_WORLD_SIZE": "4",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
            },
            "rank 0 of 4 from openmpi, rank 2 of 4 from pbs",
        ),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        resolve(pals(2, 4, 0, 2, f"x1,{HERE}") | changes)


def test_a_variable_that_is_missing_is_named():
    values = pals(2, 4, 0, 2, f"x1,{HERE}")
    del values["PMI_SIZE"]
    with pytest.raises(UserError, match="PMI_SIZE"):
        resolve(values)
