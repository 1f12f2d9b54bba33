from collections import Counter

import numpy as np
import pytest

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("framework")]


def layer_of(rate, seed=0, index=0, spatial=False, gaussian=False):
    import keras

    from scalestudy.engines.tensorflow.layers import make_ours

    kind = keras.layers.SpatialDropout2D if spatial else keras.layers.Dropout
    layer = keras.layers.GaussianNoise(rate) if gaussian else kind(rate)
    make_ours(layer, seed, iter([index]))
    return layer


def dropped(rows: slice, *, step: int = 0, index: int = 0, seed: int = 0, shape=(16, 5, 3), **kind: bool):
    import tensorflow as tf

    from scalestudy.data.loading.slices import Slice
    from scalestudy.engines.context import Working, working

    layer = layer_of(0.4, seed, index, **kind)
    numbers = [tf.constant(value, tf.int64) for value in (rows.start, rows.stop - rows.start, shape[0], step)]
    with working(Working(Slice(None, None, *numbers), 1.0)):
        return np.asarray(layer(np.ones(shape, "float32")[rows], training=True))


@pytest.mark.parametrize("gaussian", [False, True])
def test_workers_draw_the_rows_of_one_noise(gaussian):
    whole = dropped(slice(0, 16), gaussian=gaussian)
    parts = [dropped(slice(start, start + 4), gaussian=gaussian) for start in range(0, 16, 4)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert len({row.tobytes() for row in whole}) == 16


def test_gaussian_noise_has_its_standard_deviation():
    noise = dropped(slice(0, 2000), shape=(2000, 10), gaussian=True) - 1
    assert (noise.mean(), noise.std()) == pytest.approx((0, 0.4), abs=0.01)


def test_steps_layers_and_seeds_draw_differently():
    noises = [dropped(slice(0, 16)), dropped(slice(0, 16), step=1), dropped(slice(0, 16), index=1),
              dropped(slice(0, 16), seed=1)]  # fmt: skip
    assert len({noise.tobytes() for noise in noises}) == 4


def test_a_layer_that_is_called_twice_in_a_step_draws_anew_and_the_next_step_begins_again():
    import tensorflow as tf

    from scalestudy.data.loading.slices import Slice
    from scalestudy.engines.context import Working, working

    layer, ones = layer_of(0.4), np.ones((16, 5), "float32")
    numbers = [tf.constant(value, tf.int64) for value in (0, 16, 16, 0)]

    def step():
        with working(Working(Slice(None, None, *numbers), 1.0, calls=Counter())):
            return [np.asarray(layer(ones, training=True)) for _ in range(2)]

    first, second = step()
    assert not np.array_equal(first, second)
    assert all(np.array_equal(a, b) for a, b in zip(step(), (first, second), strict=True))


def test_samples_differ_and_the_rate_is_kept():
    noise = dropped(slice(0, 2000), shape=(2000, 10))
    assert np.mean(noise == 0) == pytest.approx(0.4, abs=0.02)
    assert set(np.unique(noise)) == {np.float32(0), np.float32(1 / 0.6)}
    assert len({row.tobytes() for row in noise}) > 500


def test_spatial_dropout_drops_whole_channels():
    noise = dropped(slice(0, 16), shape=(16, 4, 4, 8), spatial=True)
    assert np.array_equal(noise, np.broadcast_to(noise[:, :1, :1], noise.shape))


def test_without_training_nothing_is_dropped():
    assert np.all(np.asarray(layer_of(0.9)(np.ones((4, 4), "float32"))) == 1)
