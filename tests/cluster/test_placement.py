from contextlib import nullcontext

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


@pytest.mark.parametrize(
    ("rank", "changes", "message"),
    [
        (2, {"local_rank": 0}, r"rank 2 of 2 \(from torchrun\)"),
        (0, {"local_rank": 1}, "local rank 1 of 2 with rank 0 of 2"),
        (0, {"hosts": ("a",)}, "1 hosts"),
    ],
)
def test_a_placement_that_contradicts_itself_is_refused(rank, changes, message):
    with pytest.raises(UserError, match=message):
        placement(rank, **changes)


@pytest.mark.parametrize(
    ("place", "strategy", "workers", "gpus", "message"),
    [
        (placement(), "horovod", 4, None, "4 processes for horovod with 4 workers"),
        (placement(), "mirrored", 2, None, "1 process for mirrored"),
        (placement(), "horovod", 2, 1, "a GPU for each of the 2 workers"),
        (placement(0, 1), "mirrored", 2, 1, "a GPU for each of the 2 workers"),
        (
            placement(0, 1, gpus=2),
            "mirrored",
            2,
            1,
            "1 visible",
        ),  # it must see all of them
        (placement(gpus=2), "horovod", 2, 1, ""),  # it sees only its own
        (placement(), "horovod", 2, 2, ""),
    ],
)
def test_a_placement_that_contradicts_its_point_is_refused(
    place, strategy, workers, gpus, message
):
    with pytest.raises(UserError, match=message) if message else nullcontext():
        check_placement(place, strategy=traits(strategy), workers=workers, gpus=gpus)
