"""Micro-batches: a step of n workers with k each equals a step of n·k workers, or of one."""

import numpy as np
import pytest

pytestmark = pytest.mark.engine

GLOBAL_BATCH = 11  # with 20 training samples, the last step of an epoch has nine
SETTINGS = {"batch_size": GLOBAL_BATCH, "precision": "float64", "learning_rate": 0.001}


@pytest.fixture(scope="module")
def made():
    return {}


def trained(session, made, implementation, workers, accumulate):
    """Return the weights before and after two epochs of the U-Net, moving statistics last, and the losses."""
    key = implementation, workers, accumulate
    if key not in made:
        one = session(
            "unet", implementation, workers, accumulate=accumulate, **SETTINGS
        )
        before = one.trainer.state.weights()[0]
        records = list(one.epoch_records())
        digests = one.digests()
        assert len(set(digests)) == 1
        made[key] = (
            before,
            one.trainer.state.weights()[0],
            [record.loss for record in records],
        )
        assert one.updates == 4 and records[0].samples == 20
    return made[key]


@pytest.mark.parametrize(
    ("workers", "micro_batches"),
    [
        (("single", 1, 4), ("virtual", 4, 1)),
        (("single", 1, 2), ("mirrored", 2, 1)),
        (("mirrored", 2, 2), ("virtual", 4, 1)),
        (("virtual", 2, 2), ("mirrored", 2, 2)),
    ],
)
def test_k_micro_batches_of_n_workers_are_one_of_each_of_n_k_workers(
    session, made, workers, micro_batches
):
    before, one, losses = trained(session, made, *workers)
    _, other, expected = trained(session, made, *micro_batches)
    change = max(np.abs(a - b).max() for a, b in zip(one, before, strict=True))
    assert change > 1e-3
    assert (
        max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))
        < 1e-9 * change
    )
    np.testing.assert_allclose(losses, expected, rtol=1e-9)


def test_each_micro_batch_has_statistics_of_its_own(session, made):
    _, whole, _ = trained(session, made, "single", 1, 1)
    _, parts, _ = trained(session, made, "single", 1, 4)
    assert max(np.abs(a - b).max() for a, b in zip(whole, parts, strict=True)) > 1e-4


def test_sums_begin_in_the_last_micro_batch(session):
    from exchange import exchange

    one = session(
        "cnn", "mirrored", 2, epochs=1, launch={"bucket_size": "64 KiB"}, accumulate=2
    )
    list(one.epoch_records())
    assert exchange(one.trainer._train[0]) == (3, 3)


@pytest.mark.parametrize("batch", ["per-worker", "global"])
def test_the_global_batch_is_what_is_computed_between_two_updates(session, batch):
    one = session("cnn", "virtual", 2, batch=batch, batch_size=24, accumulate=3)
    rows = {"per-worker": 24 * 3 * 2, "global": 24}[batch]
    assert one.point.global_batch == rows
    assert (one.point.per_worker_batch, one.point.micro_batch) == (rows // 2, rows // 6)
    assert one.point.batch_ratio == {"per-worker": 6, "global": 1}[batch]
    assert one.steps == -(-120 // rows)


def test_several_steps_in_a_call_compute_the_same(session):
    weights = []
    for steps in (1, 2):
        one = session(
            "cnn", "single", 1, batch_size=25, accumulate=4, steps_per_call=steps
        )
        list(one.epoch_records())
        weights.append(one.trainer.state.weights()[0])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)
