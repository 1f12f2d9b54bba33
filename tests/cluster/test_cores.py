import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.worker_environment import own_cores


def placement(local_rank: int, local_size: int) -> Placement:
    return Placement(local_rank, local_size, local_rank, local_size, 0, ("n1",) * local_size, "slurm")


@pytest.mark.parametrize(("local_rank", "cores"), [(0, [0, 1]), (1, [4, 5]), (2, [6, 7])])
def test_of_shared_cores_each_process_takes_its_share(local_rank, cores):
    assert own_cores([7, 6, 5, 4, 1, 0], 2, placement(local_rank, 3)) == cores


def test_cores_that_fit_are_kept():
    assert own_cores([2, 3], 2, placement(1, 2)) is None


def test_too_few_cores_for_all_local_processes_are_shared_by_all():
    assert own_cores([0, 1, 2], 2, placement(1, 2)) is None


def test_a_process_alone_on_a_large_node_stays_on_what_its_workers_were_promised():
    assert own_cores(range(48), 4, placement(0, 1)) == [0, 1, 2, 3]


@given(st.sets(st.integers(0, 255), min_size=1), st.integers(1, 16), st.integers(1, 16))
def test_shares_are_of_one_size_and_never_overlap(granted, need, local_size):
    shares = [own_cores(list(granted), need, placement(rank, local_size)) for rank in range(local_size)]
    taken = [core for share in shares if share is not None for core in share]
    assert len(taken) == len(set(taken))
    assert set(taken) <= granted
    assert len({share is None for share in shares}) == 1
    assert all(share is None or len(share) == need for share in shares)


HALVES = [range(4, 8), range(4, 8), range(4), range(4)]


def test_of_shared_cores_each_process_takes_those_near_its_gpu():
    found = [own_cores(range(8), 2, placement(rank, 4), HALVES) for rank in range(4)]
    assert found == [[4, 5], [6, 7], [0, 1], [2, 3]]


def test_a_process_of_several_gpus_takes_the_cores_near_each():
    assert own_cores(range(8), 2, placement(0, 1), [range(4, 8), range(4)]) == [0, 4]
    assert own_cores(range(8), 2, placement(1, 2), HALVES) == [0, 1]
