"""Every noise layer of Keras gives the weights of one worker, under any strategy."""

import numpy as np
import pytest

from paths import SUPPORT

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def trained(session, implementation, workers):
    one = session(
        str(SUPPORT / "noisy_task.py"),
        implementation,
        workers,
        epochs=1,
        precision="float64",
        data="cnn",
    )
    list(one.epoch_records())
    return one.trainer.state.weights()[0]


def test_the_weights_are_those_of_one_worker(session):
    alone = trained(session, "single", 1)
    again = trained(session, "single", 1)
    assert all(
        np.array_equal(one, other) for one, other in zip(alone, again, strict=True)
    )
    for implementation, workers in (("virtual", 3), ("mirrored", 2)):
        for one, other in zip(
            alone, trained(session, implementation, workers), strict=True
        ):
            np.testing.assert_allclose(
                other, one, rtol=1e-6, atol=1e-9, err_msg=implementation
            )
