import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.resolve import resolve
from scalestudy.cluster.tf_config import tf_config
from scalestudy.errors import UserError


def torchrun(rank: int, size: int) -> dict[str, str]:
    return {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost", "MASTER_PORT": "20000",
    }  # fmt: skip


def openmpi(rank: int, size: int) -> dict[str, str]:
    names = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank, "LOCAL_SIZE": size}
    return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in names.items()}


def test_a_process_started_alone_is_rank_0_of_1():
    assert resolve({}) == Placement(0, 1, 0, 1, 0, (socket.gethostname(),), "alone")


@given(st.integers(1, 64).flatmap(lambda size: st.tuples(st.integers(0, size - 1), st.just(size))))
def test_torchruns_variables_are_read(place):
    rank, size = place
    found = resolve(torchrun(rank, size))
    assert (found.rank, found.size, found.local_rank, found.port) == (rank, size, rank, 20000)
    assert found.hosts == ("localhost",) * size


def test_mpiruns_variables_are_read():
    found = resolve(openmpi(1, 2))
    assert (found.rank, found.size, found.source) == (1, 2, "openmpi")


def test_two_launchers_that_disagree_are_refused_by_name():
    with pytest.raises(UserError, match="from torchrun, rank 0 of 2 from openmpi"):
        resolve(torchrun(1, 2) | openmpi(0, 2))


def test_two_launchers_that_agree_are_one():
    assert resolve(torchrun(1, 2) | openmpi(1, 2)).source == "torchrun"


@pytest.mark.parametrize("value", ["", "two", "-1", "1.5"])
def test_a_variable_that_is_no_number_is_refused_by_name(value):
    with pytest.raises(UserError, match="WORLD_SIZE"):
        resolve(torchrun(0, 2) | {"WORLD_SIZE": value})


def test_a_missing_variable_is_named():
    incomplete = torchrun(0, 2)
    del incomplete["LOCAL_RANK"]
    with pytest.raises(UserError, match="LOCAL_RANK"):
        resolve(incomplete)


def test_tf_config_gives_each_worker_a_port_of_its_own():
    config = json.loads(tf_config(resolve(torchrun(1, 3))))
    assert config["cluster"] == {"worker": ["localhost:20000", "localhost:20001", "localhost:20002"]}
    assert config["task"] == {"type": "worker", "index": 1}


def test_tf_config_without_a_port_is_refused():
    with pytest.raises(UserError, match="the port of every worker"):
        tf_config(resolve(openmpi(0, 2)))
