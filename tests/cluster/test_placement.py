import pytest

from scalestudy.cluster.placement import Placement, check_placement
from scalestudy.plugins.strategies import traits
from scalestudy.util.errors import UserError


def placement(rank: int = 0, size: int = 2, **changes) -> Placement:
    values = {
        "local_rank": rank,
        "local_size": size,
        "node_rank": 0,
        "hosts": ("a",) * size,
        "source": "torchrun",
    }
    return Placement(rank, size, **{**values, **changes})


def test_a_rank_beyond_the_size_is_refused_with_its_source():
    with pytest.raises(UserError, match=r"rank 2 of 2 \(from torchrun\)"):
        placement(2, 2, local_rank=0)


def test_a_local_rank_beyond_the_rank_is_refused():
    with pytest.raises(UserError, match="local rank 1 of 2 with rank 0 of 2"):
        placement(0, 2, local_rank=1)


def test_every_process_needs_a_host():
    with pytest.raises(UserError, match="1 hosts"):
        placement(0, 2, hosts=("a",))


def test_too_few_processes_are_refused():
    with pytest.raises(UserError, match="4 processes for horovod with 4 workers"):
        check_placement(placement(), strategy=traits("horovod"), workers=4)


def test_two_processes_for_a_strategy_that_needs_one_are_refused():
    with pytest.raises(UserError, match="1 process for mirrored"):
        check_placement(placement(), strategy=traits("mirrored"), workers=2)


@pytest.mark.parametrize("implementation", ["mirrored", "horovod"])
def test_fewer_gpus_than_local_workers_are_refused(implementation):
    place = placement(0, 1) if implementation == "mirrored" else placement()
    with pytest.raises(UserError, match="a GPU for each of the 2 workers"):
        check_placement(place, strategy=traits(implementation), workers=2, gpus=1)


def test_a_process_that_sees_only_its_own_of_several_granted_gpus_passes():
    check_placement(placement(gpus=2), strategy=traits("horovod"), workers=2, gpus=1)


def test_mirrored_must_see_all_its_gpus_whatever_was_granted():
    with pytest.raises(UserError, match="1 visible"):
        check_placement(placement(0, 1, gpus=2), strategy=traits("mirrored"), workers=2, gpus=1)


def test_a_fitting_placement_passes():
    check_placement(placement(), strategy=traits("horovod"), workers=2, gpus=2)


def test_a_server_and_a_coordinator_need_no_gpu():
    strategy = traits("parameter-server")
    roles = strategy.roles_of(2)
    place = placement(0, 4, roles=roles)
    check_placement(place, strategy=strategy, workers=2, gpus=2)
    with pytest.raises(UserError, match="a GPU for each of the 2 workers"):
        check_placement(place, strategy=strategy, workers=2, gpus=1)
    spread = placement(1, 4, roles=roles, hosts=("a", "b", "b", "b"), local_rank=0, local_size=3)
    assert (spread.local_workers, place.local_workers, placement().local_workers) == (1, 2, 2)
