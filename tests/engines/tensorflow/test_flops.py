"""Floating-point operations of a step, counted in the graph that computes, against counts by hand."""

import pytest

pytestmark = pytest.mark.engine

BATCH = 4


@pytest.fixture(scope="module")
def counted(framework):
    """counted(model, shape): of a training step of its parameters, for each sample of a batch of any size."""
    import tensorflow as tf

    from scalestudy.engines.tensorflow.flops import flops_of

    def count(model, *shape, dtype="float32", loops=0, around=lambda step: step):
        weights = [weight.value for weight in model.trainable_variables]

        def step(x):
            with tf.GradientTape() as tape:
                losses = tf.reduce_sum(model(x, training=True) ** 2)
            return tape.gradient(losses, weights)

        spec = tf.TensorSpec((None, *shape), dtype)
        function = tf.function(around(step), autograph=False).get_concrete_function(spec)
        return flops_of(function, [tf.TensorShape((BATCH, *shape))], BATCH, loops=loops)

    return count


def layers(*made, shape):
    import keras

    return keras.Sequential([keras.Input(shape), *made])


def test_what_the_input_would_need_is_not_computed_and_not_counted(counted):
    from keras.layers import Dense

    assert counted(layers(Dense(3), shape=(5,)), 5) == (2 * (2 * 5 * 3), ())
    two = layers(Dense(3), Dense(4), shape=(5,))
    assert counted(two, 5).per_sample == 2 * (2 * 5 * 3 + 3 * 3 * 4)


def test_a_product_over_rows_of_samples_counts_each_row(counted):
    from keras.layers import Dense

    assert counted(layers(Dense(3), shape=(7, 5)), 7, 5).per_sample == 2 * 7 * (2 * 5 * 3)


def test_convolutions_count_a_window_for_each_place_and_channel(counted):
    from keras.layers import Conv2D

    strided, valid = 4 * 4 * 9 * 2 * 4, 2 * 2 * 9 * 4 * 6
    model = layers(Conv2D(4, 3, strides=2, padding="same"), Conv2D(6, 3), shape=(8, 8, 2))
    assert counted(model, 8, 8, 2).per_sample == 2 * (2 * strided + 3 * valid)


def test_depthwise_and_transposed_convolutions_are_counted(counted):
    from keras.layers import Conv2DTranspose, DepthwiseConv2D

    depthwise = layers(DepthwiseConv2D(3, padding="same"), shape=(8, 8, 2))
    assert counted(depthwise, 8, 8, 2).per_sample == 2 * (2 * 64 * 9 * 2)
    transposed = layers(Conv2DTranspose(3, 2, strides=2), shape=(8, 8, 2))
    assert counted(transposed, 8, 8, 2).per_sample == 2 * (2 * 64 * 2 * 4 * 3)


def test_attention_is_counted_in_each_of_its_products(counted):
    import keras

    inputs = keras.Input((6, 8))
    model = keras.Model(inputs, keras.layers.MultiHeadAttention(2, 4, flash_attention=False)(inputs, inputs))
    projections, weights = 6 * 8 * 8, 6 * 6 * 2 * 4
    # Gradients of the three projections' common input are not needed; the fourth's is.
    assert counted(model, 6, 8).per_sample == 2 * (3 * 2 * projections + 3 * projections + 2 * 3 * weights)


def test_one_round_of_our_own_loop_is_a_step_and_other_loops_are_not_guessed(counted):
    import tensorflow as tf
    from keras.layers import LSTM, Dense

    def looped(step):
        def rounds(x):
            first = [tf.zeros_like(each) for each in step(x)]
            again = lambda at, *_: (at + 1, *step(x))  # noqa: E731
            return tf.while_loop(lambda at, *_: at < tf.shape(x)[0], again, (0, *first))

        return rounds

    model = layers(Dense(3), shape=(5,))
    once = counted(model, 5).per_sample
    assert counted(model, 5, around=looped, loops=1).per_sample == once
    assert counted(model, 5, around=looped).uncounted == ("a loop of unknown length",)
    recurrent = counted(layers(LSTM(3), shape=(9, 4)), 9, 4)
    assert recurrent.per_sample is None and "a loop of unknown length" in recurrent.uncounted


def test_what_multiplies_and_is_not_known_is_named_and_leaves_a_blank(counted):
    import keras
    import tensorflow as tf

    class Solved(keras.layers.Layer):
        def build(self, shape):
            self.matrix = self.add_weight(shape=(3, 3), initializer="identity")

        def call(self, x):
            return tf.linalg.solve(self.matrix + tf.eye(3), tf.transpose(x))

    found = counted(layers(Solved(), shape=(3,)), 3)
    assert found.per_sample is None and "MatrixSolve" in found.uncounted


def test_a_layer_that_multiplies_nothing_leaves_a_blank_and_no_zero(counted):
    from keras.layers import Rescaling

    assert counted(layers(Rescaling(2.0), shape=(3,)), 3).per_sample is None
