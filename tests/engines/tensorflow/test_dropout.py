from collections import Counter

import numpy as np
import pytest

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("framework")]


KINDS = {
    "Dropout": {},
    "GaussianNoise": {},
    "GaussianDropout": {},
    "AlphaDropout": {},
    "SpatialDropout2D": {"data_format": "channels_first"},
}
"""Noise layers and their arguments other than the rate."""


def layer_of(rate, seed=0, index=0, kind="Dropout", **words):
    import keras

    from scalestudy.engines.tensorflow.tensorflow_layers import replace_layer

    layer = getattr(keras.layers, kind)(rate, **words)
    replace_layer(layer, seed, iter([index]))
    return layer


def dropped(rows: slice, *, step=0, index=0, seed=0, shape=(16, 5, 3), kind="Dropout", **words):
    import tensorflow as tf

    from scalestudy.data.samples import Slice
    from scalestudy.engines.keras.layer_context import Working, working

    layer = layer_of(0.4, seed, index, kind, **words)
    numbers = [tf.constant(value, tf.int64) for value in (rows.start, rows.stop - rows.start, shape[0], step)]
    with working(Working(Slice(None, None, *numbers), 1.0)):
        return np.asarray(layer(np.ones(shape, "float32")[rows], training=True))


@pytest.mark.parametrize("kind", KINDS)
def test_workers_draw_the_rows_of_one_noise(kind):
    shape = (16, 30, 3, 2) if "2D" in kind else (16, 5, 3)
    whole = dropped(slice(0, 16), kind=kind, shape=shape, **KINDS[kind])
    parts = [
        dropped(slice(start, start + 4), kind=kind, shape=shape, **KINDS[kind]) for start in range(0, 16, 4)
    ]
    assert np.array_equal(whole, np.concatenate(parts))
    assert len({row.tobytes() for row in whole}) == 16


def test_a_noise_that_a_shape_has_alike_along_an_axis_is_so_in_each_sample():
    noise = dropped(slice(0, 16), shape=(16, 4, 6), noise_shape=(None, 1, None))
    assert np.array_equal(noise, np.broadcast_to(noise[:, :1], noise.shape))
    assert len({row.tobytes() for row in noise}) > 8


@pytest.mark.parametrize(
    ("kind", "mean", "deviation"),
    [("GaussianNoise", 1, 0.4), ("GaussianDropout", 1, (0.4 / 0.6) ** 0.5)],
)
def test_normal_noise_has_kerass_mean_and_deviation(kind, mean, deviation):
    noise = dropped(slice(0, 2000), shape=(2000, 10), kind=kind)
    assert (noise.mean(), noise.std()) == pytest.approx((mean, deviation), abs=0.02)


def test_alpha_dropout_gives_what_keras_gives():
    import keras

    plain = keras.layers.AlphaDropout(0.4)(np.ones((100, 10), "float32"), training=True)
    noise = dropped(slice(0, 2000), shape=(2000, 10), kind="AlphaDropout")
    np.testing.assert_allclose(np.unique(noise), np.unique(plain), rtol=1e-6)
    assert np.mean(noise == noise.min()) == pytest.approx(0.4, abs=0.02)


def test_other_layers_that_draw_do_so_by_the_step_and_each_worker_and_are_named():
    import keras
    import tensorflow as tf

    from scalestudy.data.samples import Slice
    from scalestudy.engines.keras.adapt import adapt
    from scalestudy.engines.keras.layer_context import Working, working
    from scalestudy.engines.keras.private import seed_generators
    from scalestudy.engines.tensorflow.tensorflow_layers import replace_layer

    flip = keras.layers.RandomFlip(seed=5, name="flip")
    alike = keras.layers.Dropout(0.5, noise_shape=(1, 4, 1, 1), seed=5)
    model = keras.Sequential([keras.Input((4, 4, 1)), flip, alike, keras.layers.Dropout(0.5), flip])
    assert adapt(model, replace_layer, seed=0, sync_batch_norm=False) == ["flip"]

    def seeds(layer, start, step):
        (generator,) = seed_generators(layer)
        part = Slice(None, None, tf.constant(start, tf.int64), 4, 8, tf.constant(step, tf.int64))
        with working(Working(part, 1.0, calls=Counter())):
            return [tuple(np.asarray(generator.next()).tolist()) for _ in range(2)]

    drawn = [seed for start in (0, 4) for step in (0, 1) for seed in seeds(flip, start, step)]
    assert len(set(drawn)) == 8 and drawn[0] == (5, 0)
    assert seeds(flip, 4, 1) == drawn[6:]  # on any worker, any number of times
    assert seeds(alike, 0, 1) == seeds(alike, 4, 1) != seeds(alike, 4, 0)


def test_steps_layers_and_seeds_draw_differently():
    noises = [
        dropped(slice(0, 16)),
        dropped(slice(0, 16), step=1),
        dropped(slice(0, 16), index=1),
        dropped(slice(0, 16), seed=1),
    ]
    assert len({noise.tobytes() for noise in noises}) == 4


def test_a_layer_that_is_called_twice_in_a_step_draws_anew_and_the_next_step_begins_again():
    import tensorflow as tf

    from scalestudy.data.samples import Slice
    from scalestudy.engines.keras.layer_context import Working, working

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
    noise = dropped(slice(0, 16), shape=(16, 4, 4, 8), kind="SpatialDropout2D")
    assert np.array_equal(noise, np.broadcast_to(noise[:, :1, :1], noise.shape))


def test_without_training_nothing_is_dropped():
    assert np.all(np.asarray(layer_of(0.9)(np.ones((4, 4), "float32"))) == 1)
