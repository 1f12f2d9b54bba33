from collections import Counter

import numpy as np
import pytest

pytestmark = pytest.mark.engine


def layer_of(rate, seed=0, index=0, spatial=False):
    import keras

    from scalestudy.engines.tensorflow.layers import adapt_layer

    layer = keras.layers.SpatialDropout2D(rate) if spatial else keras.layers.Dropout(rate)
    adapt_layer(layer, seed, iter([index]))
    return layer


def dropped(
    rows: slice, *, step: int = 0, index: int = 0, seed: int = 0, shape=(16, 5, 3), spatial: bool = False
):
    import tensorflow as tf

    from scalestudy.data.loading.slices import Slice
    from scalestudy.engines.context import Working, working

    layer = layer_of(0.4, seed, index, spatial)
    numbers = [tf.constant(value, tf.int64) for value in (rows.start, rows.stop - rows.start, shape[0], step)]
    with working(Working(Slice(None, None, *numbers), 1.0)):
        return np.asarray(layer(np.ones(shape, "float32")[rows], training=True))


def test_workers_draw_the_rows_of_one_noise():
    whole = dropped(slice(0, 16))
    parts = [dropped(slice(start, start + 4)) for start in range(0, 16, 4)]
    assert np.array_equal(whole, np.concatenate(parts))


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
