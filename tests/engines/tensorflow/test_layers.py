"""Batch normalisation and noise, alone and on several workers."""

import itertools
from collections import Counter

import keras
import numpy as np
import pytest
import tensorflow as tf

from scalestudy.data.samples import Slice
from scalestudy.engines.keras.adapt import RowNoise, adapt
from scalestudy.engines.keras.layer_context import Working, working
from scalestudy.engines.keras.private import all_layers, seed_generators
from scalestudy.engines.tensorflow import layers as tensorflow_layers
from scalestudy.engines.tensorflow.engine import set_arithmetic
from scalestudy.engines.tensorflow.layers import BatchNorm, replace_layer
from scalestudy.util.errors import UserError

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("framework")]


def pair(shape):
    """Return Keras's layer and ours, both built."""
    theirs, ours = (keras.layers.BatchNormalization(momentum=0.9) for _ in range(2))
    for layer in (theirs, ours):
        layer.build(shape)
    replace_layer(ours, 0, itertools.count())
    return theirs, ours


@pytest.fixture
def precision(request):
    """Compute in the precision that the test names."""
    set_arithmetic(0, request.param)
    yield request.param
    set_arithmetic(0, "float32")


@pytest.mark.parametrize("shape", [(6, 5, 7, 3), (8, 4)])
@pytest.mark.parametrize("precision", ["float32", "float64"], indirect=True)
def test_alone_it_is_kerass_own_in_training_and_inference(shape, precision):
    theirs, ours = pair(shape)
    x = np.random.default_rng(0).normal(2, 3, shape).astype(precision)
    tolerance = 1e-5 if precision == "float32" else 1e-12
    for _ in range(3):
        assert np.allclose(
            theirs(x, training=True), ours(x, training=True), atol=tolerance
        )
    for one, other in zip(theirs.weights, ours.weights, strict=True):
        assert np.allclose(one, other, atol=tolerance)
    assert np.allclose(theirs(x), ours(x), atol=tolerance)


def test_a_frozen_layer_keeps_its_statistics():
    _, ours = pair((4, 3))
    x = np.ones((4, 3), "float32") * 5
    ours(x)
    ours.trainable = False
    ours(x, training=True)
    assert np.all(np.asarray(ours.moving_mean) == 0)


def in_a_step(layer, x, **call):
    """Return output and gradients of a step, and the operations of its graph."""

    @tf.function
    def computed(x):
        part = Slice(x, x, *(tf.constant(n, tf.int64) for n in (0, 6, 6)))
        with tf.GradientTape() as tape, working(Working(part, tf.constant(1.0))):
            tape.watch(x)
            y = layer(x, **call)
            loss = tf.reduce_sum(tf.sin(tf.cast(y, tf.float32)))
        sources = [x, layer.gamma.value, layer.beta.value]
        return y, tape.gradient(loss, sources)

    graph = computed.get_concrete_function(tf.constant(x)).graph
    return computed(tf.constant(x)), {
        operation.type for operation in graph.get_operations()
    }


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"], indirect=True)
@pytest.mark.parametrize("frozen", [True, False])
def test_by_given_statistics_a_step_takes_no_fused_gradient_and_gets_kerass_values(
    frozen, precision
):
    random, layers = np.random.default_rng(0), pair((6, 5, 7, 3))
    x = random.normal(2, 3, (6, 5, 7, 3)).astype(
        "float32" if precision == "float32" else "float16"
    )
    weights = random.uniform(0.5, 2, (4, 3)).astype("float32")
    for layer in layers:
        layer.set_weights(weights)
        layer.trainable = not frozen
    (expected, by_theirs), _ = in_a_step(layers[0], x, training=frozen)
    (found, by_ours), operations = in_a_step(layers[1], x, training=frozen)
    assert not [name for name in operations if name.startswith("FusedBatchNorm")]
    tolerance = 1e-5 if precision == "float32" else 2e-2
    for one, other in zip([expected, *by_theirs], [found, *by_ours], strict=True):
        assert np.allclose(one, other, rtol=tolerance, atol=tolerance)
    assert all(
        np.array_equal(*pair)
        for pair in zip(layers[1].get_weights(), weights, strict=True)
    )


def test_training_itself_keeps_the_fused_kernel():
    _, ours = pair((6, 5, 7, 3))
    x = np.ones((6, 5, 7, 3), "float32")
    assert "FusedBatchNormGradV3" in in_a_step(ours, x, training=True)[1]


@pytest.mark.parametrize("gpu", [None, "GPU:0"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_of_half_precision_the_fused_kernel_computes_in_float32_on_cpus_and_as_it_is_on_gpus(
    monkeypatch, dtype, gpu
):
    _, ours = pair((6, 5, 7, 3))
    monkeypatch.setattr(tensorflow_layers, "gpu", lambda device: gpu)
    graph = tf.function(lambda x: ours.call(x, training=True)).get_concrete_function(
        tf.TensorSpec((6, 5, 7, 3), dtype)
    )
    (fused,) = [
        op for op in graph.graph.get_operations() if op.type == "FusedBatchNormV3"
    ]
    assert fused.inputs[0].dtype == (dtype if gpu else tf.float32)
    assert graph.structured_outputs.dtype == dtype


class Custom(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.norm = keras.layers.BatchNormalization()

    def call(self, x, training=False):
        return self.norm(x, training=training)


def test_a_model_keeps_its_weights_and_what_it_computes_whatever_its_layers_lie_in():
    inner = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(4), keras.layers.BatchNormalization()]
    )
    inputs = keras.Input((4,))
    outputs = keras.layers.Dense(2)(keras.layers.Dropout(0.5)(Custom()(inner(inputs))))
    model = keras.Model(inputs, outputs)
    values = [
        np.full_like(weight, 2 + index)
        for index, weight in enumerate(model.get_weights())
    ]
    model.set_weights(values)
    x = np.arange(8, dtype="float32").reshape(2, 4)
    before = np.asarray(model(x, training=False))
    adapt(model, replace_layer, seed=0, sync_batch_norm=True)
    kinds = [type(layer) for layer in all_layers(model)]
    assert kinds.count(BatchNorm) == 2
    assert sum(issubclass(kind, RowNoise) for kind in kinds) == 1
    assert keras.layers.Dropout not in kinds
    assert keras.layers.BatchNormalization not in kinds
    assert all(
        np.array_equal(a, b) for a, b in zip(model.get_weights(), values, strict=True)
    )
    np.testing.assert_allclose(np.asarray(model(x, training=False)), before, rtol=1e-5)


def test_synchronising_over_another_axis_is_refused_by_name():
    model = keras.Sequential(
        [keras.Input((4, 3)), keras.layers.BatchNormalization(axis=1, name="rows")]
    )
    with pytest.raises(UserError, match="in the layer rows"):
        adapt(model, replace_layer, seed=0, sync_batch_norm=True)


KINDS = {
    "Dropout": {},
    "GaussianNoise": {},
    "GaussianDropout": {},
    "AlphaDropout": {},
    "SpatialDropout2D": {"data_format": "channels_first"},
}
"""Noise layers and their arguments other than the rate."""


def layer_of(rate, seed=0, index=0, kind="Dropout", **words):
    layer = getattr(keras.layers, kind)(rate, **words)
    replace_layer(layer, seed, iter([index]))
    return layer


def worker(*numbers: int, **more):
    """Let layers see a worker's slice: start, count, total and step."""
    part = Slice(None, None, *(tf.constant(number, tf.int64) for number in numbers))
    return working(Working(part, 1.0, **more))


def dropped(
    rows: slice, *, step=0, index=0, seed=0, shape=(16, 5, 3), kind="Dropout", **words
):
    layer = layer_of(0.4, seed, index, kind, **words)
    with worker(rows.start, rows.stop - rows.start, shape[0], step):
        return np.asarray(layer(np.ones(shape, "float32")[rows], training=True))


@pytest.mark.parametrize("kind", KINDS)
def test_workers_draw_the_rows_of_one_noise(kind):
    shape = (16, 30, 3, 2) if "2D" in kind else (16, 5, 3)
    whole = dropped(slice(0, 16), kind=kind, shape=shape, **KINDS[kind])
    quarters = [slice(start, start + 4) for start in range(0, 16, 4)]
    parts = [dropped(rows, kind=kind, shape=shape, **KINDS[kind]) for rows in quarters]
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
    plain = keras.layers.AlphaDropout(0.4)(np.ones((100, 10), "float32"), training=True)
    noise = dropped(slice(0, 2000), shape=(2000, 10), kind="AlphaDropout")
    np.testing.assert_allclose(np.unique(noise), np.unique(plain), rtol=1e-6)
    assert np.mean(noise == noise.min()) == pytest.approx(0.4, abs=0.02)


def test_other_layers_that_draw_do_so_by_the_step_and_each_worker_and_are_named():
    flip = keras.layers.RandomFlip(seed=5, name="flip")
    alike = keras.layers.Dropout(0.5, noise_shape=(1, 4, 1, 1), seed=5)
    model = keras.Sequential(
        [keras.Input((4, 4, 1)), flip, alike, keras.layers.Dropout(0.5), flip]
    )
    assert adapt(model, replace_layer, seed=0, sync_batch_norm=False) == ["flip"]

    def seeds(layer, start, step):
        (generator,) = seed_generators(layer)
        with worker(start, 4, 8, step, calls=Counter()):
            return [tuple(np.asarray(generator.next()).tolist()) for _ in range(2)]

    drawn = [
        seed for start in (0, 4) for step in (0, 1) for seed in seeds(flip, start, step)
    ]
    assert len(set(drawn)) == 8 and drawn[0] == (5, 0)
    assert seeds(flip, 4, 1) == drawn[6:]  # on any worker, any number of times
    assert seeds(alike, 0, 1) == seeds(alike, 4, 1) != seeds(alike, 4, 0)


def test_steps_layers_and_seeds_draw_differently():
    noises = [
        dropped(slice(0, 16), **other)
        for other in ({}, {"step": 1}, {"index": 1}, {"seed": 1})
    ]
    assert len({noise.tobytes() for noise in noises}) == 4


def test_a_layer_that_is_called_twice_in_a_step_draws_anew_and_the_next_step_begins_again():
    layer, ones = layer_of(0.4), np.ones((16, 5), "float32")

    def step():
        with worker(0, 16, 16, 0, calls=Counter()):
            return [np.asarray(layer(ones, training=True)) for _ in range(2)]

    first, second = step()
    assert not np.array_equal(first, second)
    assert all(
        np.array_equal(a, b) for a, b in zip(step(), (first, second), strict=True)
    )


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
