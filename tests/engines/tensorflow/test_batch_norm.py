import keras
import numpy as np
import pytest

from scalestudy.util.errors import UserError

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("framework")]


def pair(axis_last: bool = True):
    from scalestudy.engines.tensorflow.layers import BatchNorm

    theirs = keras.layers.BatchNormalization(momentum=0.9)
    ours = BatchNorm.from_config(theirs.get_config())
    return theirs, ours


@pytest.mark.parametrize("shape", [(6, 5, 7, 3), (8, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_alone_it_is_kerass_own_in_training_and_inference(shape, dtype):
    from scalestudy.engines.keras.setup import set_precision

    set_precision(dtype)
    try:
        theirs, ours = pair()
        x = np.random.default_rng(0).normal(2, 3, shape).astype(dtype)
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        for _ in range(3):
            assert np.allclose(theirs(x, training=True), ours(x, training=True), atol=tolerance)
        for one, other in zip(theirs.weights, ours.weights, strict=True):
            assert np.allclose(one, other, atol=tolerance)
        assert np.allclose(theirs(x), ours(x), atol=tolerance)
    finally:
        set_precision("float32")


def test_a_frozen_layer_keeps_its_statistics():
    _, ours = pair()
    x = np.ones((4, 3), "float32") * 5
    ours(x)
    ours.trainable = False
    ours(x, training=True)
    assert np.all(np.asarray(ours.moving_mean) == 0)


def in_a_step(layer, x, **call):
    """The output in a step and its gradients, and the operations of the graph that computes them."""
    import tensorflow as tf

    from scalestudy.data.loading.slices import Slice
    from scalestudy.engines.tensorflow.layers import Working, working

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
    return computed(tf.constant(x)), {operation.type for operation in graph.get_operations()}


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
@pytest.mark.parametrize("frozen", [True, False])
def test_by_given_statistics_a_step_takes_no_fused_gradient_and_gets_kerass_values(frozen, dtype):
    from scalestudy.engines.keras.setup import set_precision

    set_precision(dtype)
    random = np.random.default_rng(0)
    try:
        layers = pair()
        x = random.normal(2, 3, (6, 5, 7, 3)).astype("float16" if dtype == "mixed_float16" else "float32")
        weights = random.uniform(0.5, 2, (4, 3)).astype("float32")
        for layer in layers:
            layer.build(x.shape)
            layer.set_weights(weights)
            layer.trainable = not frozen
        call = {"training": frozen}
        (expected, by_theirs), _ = in_a_step(layers[0], x, **call)
        (found, by_ours), operations = in_a_step(layers[1], x, **call)
    finally:
        set_precision("float32")
    assert not [name for name in operations if name.startswith("FusedBatchNorm")]
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    for one, other in zip([expected, *by_theirs], [found, *by_ours], strict=True):
        assert np.allclose(one, other, rtol=tolerance, atol=tolerance)
    assert all(np.array_equal(*pair) for pair in zip(layers[1].get_weights(), weights, strict=True))


def test_training_itself_keeps_the_fused_kernel():
    _, ours = pair()
    x = np.ones((6, 5, 7, 3), "float32")
    ours.build(x.shape)
    assert "FusedBatchNormGradV3" in in_a_step(ours, x, training=True)[1]


def test_another_axis_is_refused():
    from scalestudy.engines.tensorflow.layers import BatchNorm

    with pytest.raises(ValueError, match="the last axis"):
        BatchNorm(axis=1)(np.zeros((2, 3, 4, 5), "float32"))


class Custom(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.norm = keras.layers.BatchNormalization()

    def call(self, x, training=False):
        return self.norm(x, training=training)


def test_a_model_keeps_its_weights_when_its_layers_are_replaced():
    from scalestudy.engines.keras.private import all_layers
    from scalestudy.engines.tensorflow.layers import BatchNorm, Dropout, adapt

    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), keras.layers.BatchNormalization()])
    inputs = keras.Input((4,))
    outputs = keras.layers.Dense(2)(keras.layers.Dropout(0.5)(inner(inputs)))
    model = keras.Model(inputs, outputs)
    adapted = adapt(model, seed=0, sync_batch_norm=True)
    kinds = {type(layer) for layer in all_layers(adapted)}
    assert {BatchNorm, Dropout} <= kinds
    assert keras.layers.BatchNormalization not in kinds
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), adapted.get_weights(), strict=True))


def test_a_model_with_nothing_to_replace_stays_itself():
    from scalestudy.engines.tensorflow.layers import adapt

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    assert adapt(model, seed=0, sync_batch_norm=True) is model


def test_inside_a_layer_of_another_class_it_is_changed_in_place_and_computes_the_same():
    from scalestudy.engines.keras.private import all_layers
    from scalestudy.engines.tensorflow.layers import BatchNorm, adapt

    inputs = keras.Input((4,))
    model = keras.Model(inputs, Custom()(inputs))
    values = [np.full_like(weight, 2 + index) for index, weight in enumerate(model.get_weights())]
    model.set_weights(values)
    x = np.arange(8, dtype="float32").reshape(2, 4)
    before = np.asarray(model(x, training=False))
    adapted = adapt(model, seed=0, sync_batch_norm=True)
    assert [type(layer) for layer in all_layers(adapted) if "norm" in layer.name] == [BatchNorm]
    assert all(np.array_equal(a, b) for a, b in zip(adapted.get_weights(), values, strict=True))
    np.testing.assert_allclose(np.asarray(adapted(x, training=False)), before, rtol=1e-6)


def test_synchronising_over_another_axis_is_refused_by_name():
    from scalestudy.engines.tensorflow.layers import adapt

    model = keras.Sequential([keras.Input((4, 3)), keras.layers.BatchNormalization(axis=1, name="rows")])
    with pytest.raises(UserError, match="another in the layer rows"):
        adapt(model, seed=0, sync_batch_norm=True)
