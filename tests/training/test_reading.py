"""The number of steps in a call does not depend on the number of workers."""

import pytest

from made_points import made_point
from scalestudy.training.reading import SMALL_STEP, STEPS_PER_CALL, steps_per_call

MANY = 1000
SAMPLE = SMALL_STEP // 32


def point(
    strategy: str = "horovod",
    workers: int = 1,
    batch: str = "per-worker",
    size: int = 32,
    **train,
):
    return made_point(
        strategy, {"batch_size": size, "batch": batch, **train}, workers=workers
    )


@pytest.mark.parametrize("batch", ["per-worker", "global"])
@pytest.mark.parametrize(
    ("sample", "steps"), [(SAMPLE, STEPS_PER_CALL), (SAMPLE + 1, 1)]
)
def test_it_is_the_same_at_every_number_of_workers(batch, sample, steps):
    found = {
        steps_per_call(point(workers=n, batch=batch), sample, MANY)
        for n in (1, 2, 8, 32)
    }
    assert found == {steps}


def test_an_epoch_with_fewer_steps_is_one_call():
    assert steps_per_call(point(), SAMPLE, 5) == 5
    assert steps_per_call(point(steps_per_call=64), SAMPLE, 5) == 5


def test_what_the_study_says_counts():
    assert steps_per_call(point(steps_per_call=3), 100 * SAMPLE, MANY) == 3


def test_where_one_device_holds_all_workers_it_follows_from_what_it_holds():
    assert steps_per_call(point("virtual", 64), SAMPLE, MANY) == 1
    assert (
        steps_per_call(point("virtual", 64, "global"), SAMPLE, MANY) == STEPS_PER_CALL
    )
