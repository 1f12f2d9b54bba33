"""Same batches, same answer, for photographs padded with flat bands."""

import numpy as np
import pytest

pytestmark = pytest.mark.engine

UPDATES = 8
BATCH = 6
IMPLEMENTATIONS = {"mirrored": 2, "virtual": 3}
RATES = {"momentum": 0.01, "adam": 0.001}


@pytest.fixture
def worked(session):
    def make(implementation: str, optimizer: str, precision: str):
        return session(
            "cnn",
            implementation,
            IMPLEMENTATIONS.get(implementation, 1),
            data="photographs",
            optimizer=optimizer,
            learning_rate=RATES[optimizer],
            precision=precision,
            batch_size=BATCH,
        )

    return make


def update(one, number: int) -> None:
    """Compute update `number`, from 0."""
    begin = number * BATCH % len(one.split.train)
    call = one._loader.read(one.split.train, [(begin, begin + BATCH)], number)
    float(one.trainer.train(call))


def weights(one) -> list[np.ndarray]:
    return one.trainer.weights()[0]


def furthest(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def test_in_float64_the_weights_are_those_of_one_worker(worked):
    alone = worked("single", "adam", "float64")
    before = weights(alone)
    for number in range(UPDATES):
        update(alone, number)
    change = furthest(before, weights(alone))
    assert change > 1e-3
    for implementation in IMPLEMENTATIONS:
        other = worked(implementation, "adam", "float64")
        assert furthest(before, weights(other)) == 0
        for number in range(UPDATES):
            update(other, number)
        assert furthest(weights(alone), weights(other)) <= 1e-8 * change


@pytest.mark.parametrize(("optimizer", "tolerance"), [("momentum", 1e-4), ("adam", 1e-2)])
def test_in_float32_every_update_of_the_same_weights_is_that_of_one_worker(worked, optimizer, tolerance):
    """If many pixels are equal, rounding grows without bound over steps, but not within one."""
    alone = worked("single", optimizer, "float32")
    others = [worked(implementation, optimizer, "float32") for implementation in IMPLEMENTATIONS]
    for number in range(UPDATES):
        values, before = alone.trainer.values(), weights(alone)
        update(alone, number)
        change = furthest(before, weights(alone))
        assert change > 1e-4
        for other in others:
            other.trainer.assign(values)
            update(other, number)
            assert furthest(weights(alone), weights(other)) <= tolerance * change


def test_the_photographs_are_padded(sets):
    prepared, _ = sets["photographs"]
    assert prepared.input_shape == (20, 20, 3)
    bands = [np.all(image == 0, axis=-1).mean() for image in prepared.inputs]
    assert np.mean(np.array(bands) > 0.2) > 0.5
