"""The share of each variable in a model's arithmetic, compared with values computed by hand."""

import keras
import pytest

from scalestudy.engines.keras.phases import flops_of, multiply_adds

pytestmark = pytest.mark.engine


def small():
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(
                4, 3, padding="same", strides=2
            ),  # 3·3·1·4 weights at 4·4 positions
            layers.BatchNormalization(),
            layers.Conv2DTranspose(
                2, 2, strides=2
            ),  # 2·2·2·4 weights at 4·4 input positions
            layers.Flatten(),
            layers.Dense(10),  # 128·10 weights, once
        ]
    )


def test_kernels_count_at_each_place_and_biases_and_normalisation_do_not():
    model = small()
    work = dict(
        zip(
            [variable.path for variable in model.trainable_variables],
            multiply_adds(model, model.trainable_variables),
            strict=True,
        )
    )
    assert sorted(work.values()) == [0, 0, 0, 0, 0, 32 * 16, 36 * 16, 1280]
    assert all(
        value == 0
        for path, value in work.items()
        if path.endswith(("bias", "gamma", "beta"))
    )


def test_a_model_inside_another_is_looked_into():
    inner = small()
    outer = keras.Sequential([keras.Input((8, 8, 1)), inner, keras.layers.Dense(3)])
    assert (
        sum(multiply_adds(outer, outer.trainable_variables))
        == 36 * 16 + 32 * 16 + 1280 + 30
    )


def test_a_model_that_does_not_tell_its_shapes_has_no_work():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, inputs):
            return self.dense(inputs) + self.dense(2 * inputs)

    model = Own()
    model(keras.ops.zeros((1, 3)))
    assert multiply_adds(model, model.trainable_variables) is None
    assert flops_of(model, model.trainable_variables) == (None, ("Dense",))


def flops(*made, shape, frozen=()):
    model = keras.Sequential([keras.Input(shape), *made])
    for layer in frozen:
        layer.trainable = False
    return flops_of(model, model.trainable_variables)


def test_a_step_computes_three_products_for_each_and_no_gradient_of_its_inputs():
    layers = keras.layers
    assert flops(layers.Dense(3), shape=(5,)) == (2 * (2 * 5 * 3), ())
    assert flops(layers.Dense(3), layers.Dense(4), shape=(5,)).per_sample == 2 * (
        2 * 5 * 3 + 3 * 3 * 4
    )
    strided, valid = 4 * 4 * 9 * 2 * 4, 2 * 2 * 9 * 4 * 6
    convolutions = layers.Conv2D(4, 3, strides=2, padding="same"), layers.Conv2D(6, 3)
    assert flops(*convolutions, shape=(8, 8, 2)).per_sample == 2 * (
        2 * strided + 3 * valid
    )
    depthwise = layers.DepthwiseConv2D(3, padding="same")
    assert flops(depthwise, shape=(8, 8, 2)).per_sample == 2 * (2 * 64 * 9 * 2)


def test_frozen_layers_compute_forward_and_what_those_below_them_need():
    first, second, last = (keras.layers.Dense(4, use_bias=False) for _ in range(3))
    assert flops(
        first, second, last, shape=(4,), frozen=[first]
    ).per_sample == 2 * 16 * (1 + 2 + 3)
    first, second, last = (keras.layers.Dense(4, use_bias=False) for _ in range(3))
    assert flops(
        first, second, last, shape=(4,), frozen=[second]
    ).per_sample == 2 * 16 * (2 + 2 + 3)


def test_layers_that_multiply_in_other_ways_are_named_and_leave_a_blank():
    layers = keras.layers
    assert flops(layers.LSTM(3), shape=(9, 4)) == (None, ("LSTMCell",))
    inputs = keras.Input((6, 8))
    model = keras.Model(inputs, layers.MultiHeadAttention(2, 4)(inputs, inputs))
    assert flops_of(model, model.trainable_variables) == (None, ("EinsumDense",))
    assert flops(layers.Rescaling(2.0), shape=(3,)) == (None, ())
    embedded = flops(layers.Embedding(100, 8), layers.Dense(3), shape=(5,))
    assert embedded.per_sample == 2 * 3 * 5 * 8 * 3
