"""What layers of the user's own model do while workers share it, where their meaning would depend on them.

Nothing is exchanged for another layer: the model stays the user's own, whatever class it is of.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from scalestudy.engines.context import current
from scalestudy.engines.keras.adapt import GROUP, SPATIAL
from scalestudy.engines.keras.private import all_layers, own_moments, replaced, seed_state
from scalestudy.engines.tensorflow.layers import PHILOX
from scalestudy.util.errors import UserError


def shared_layers(model: keras.Model) -> AbstractContextManager[None]:
    """Within, dropout draws what one worker would draw, and batch normalisation spans workers if asked to.

    Raises:
        UserError: If a layer is asked to normalise over all workers in a way that is not known here.
    """
    calls: dict[keras.layers.Layer, dict[str, Callable[..., Any]]] = {}
    for layer in all_layers(model):
        if isinstance(layer, layers.BatchNormalization):
            if layer.synchronized and layer.renorm:
                raise UserError(
                    "batch normalisation either synchronized or with renorm, on several workers",
                    f"both in {layer.name}",
                    "Take one of them.",
                )
            calls[layer] = {"_moments": _moments(layer)}
        # Dropout with a shape of its own for the noise draws alike for all samples.
        elif isinstance(layer, SPATIAL) or (isinstance(layer, layers.Dropout) and layer.noise_shape is None):
            calls[layer] = {"call": _dropout(layer)} if layer.rate > 0 else {}
    return replaced(calls)


def _dropout(layer: layers.Dropout) -> Callable[..., Any]:
    """Keras's own noise for the rows of the whole batch, of which each worker draws its own."""
    plain = layer.call

    def call(inputs: Any, training: bool = False) -> Any:
        worker = current()
        if not training or worker is None:
            return plain(inputs, training=training)
        state = seed_state(layer).value
        first = tf.cast(worker.slice.first, state.dtype)
        ahead = tf.stack([tf.zeros_like(first), tf.ones_like(first)])
        seed = tf.identity(state) - ahead * (1 - first)  # the first of those computed in turn has moved it on
        state.assign(seed + ahead)
        rows, *sample = tf.unstack(tf.shape(inputs))
        if isinstance(layer, SPATIAL):
            last = getattr(layer, "data_format", "channels_last") == "channels_last"
            ones = [1] * (len(sample) - 1)
            sample = [*ones, sample[-1]] if last else [sample[0], *ones]
        kept = _rows_of_noise(sample, seed, worker.slice.start, rows) >= layer.rate
        scaled = inputs * tf.constant(1 / (1 - layer.rate), inputs.dtype)
        return tf.where(kept, scaled, tf.zeros_like(inputs))

    return call


def _rows_of_noise(sample: list[Any], seed: Any, start: Any, rows: Any) -> Any:
    """Rows of what `tf.random.stateless_uniform` draws for a whole batch, from `start` on.

    A counter of Philox (Salmon et al., SC11) gives four numbers: the worker begins at that of its first.
    """
    values = tf.cast(tf.reduce_prod(tf.stack(sample)), tf.int64)
    begin = start * values
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=tf.cast(seed, tf.int32))
    skipped = tf.stack([tf.cast(begin // GROUP, tf.uint64), tf.zeros([], tf.uint64)])
    count = tf.cast(rows, tf.int64) * values
    drawn = tf.raw_ops.StatelessRandomUniformV2(
        shape=tf.reshape(count + GROUP, [1]), key=key, counter=counter + skipped, alg=PHILOX, dtype=tf.float32
    )
    within = begin % GROUP
    return tf.reshape(drawn[within : within + count], tf.stack([rows, *sample]))


def _moments(layer: layers.BatchNormalization) -> Callable[..., Any]:
    """Mean and variance over the worker's own rows, or over those of all workers (`synchronized=True`)."""
    plain = own_moments(layer)

    def moments(inputs: Any, mask: Any) -> Any:
        worker = current()
        if worker is None:
            return plain(inputs, mask)
        if worker.sync_sum is None or not layer.synchronized:
            # Of a row of zeros the moving statistics instead, so that they stay as they are.
            moving = layer.moving_mean.value, layer.moving_variance.value
            return tuple(
                tf.where(worker.slice.count > 0, value, tf.cast(before, value.dtype))
                for value, before in zip(plain(inputs, mask), moving, strict=True)
            )
        axis = layer.axis % len(inputs.shape)
        axes = [other for other in range(len(inputs.shape)) if other != axis]
        weights = tf.ones_like(inputs) if mask is None else tf.cast(mask, inputs.dtype)[..., None]
        weights = tf.where(worker.slice.count > 0, weights, tf.zeros_like(weights)) * tf.ones_like(inputs)
        # About the moving mean, which every worker knows: about zero, float32 would lose the variance.
        about = tf.stop_gradient(tf.cast(layer.moving_mean.value, inputs.dtype))
        centred = inputs - tf.reshape(about, [-1 if other == axis else 1 for other in range(len(axes) + 1)])
        sums = [
            tf.reduce_sum(weights * values, axes)
            for values in (centred, tf.square(centred), tf.ones_like(centred))
        ]
        total, squares, count = tf.unstack(worker.sync_sum(tf.stack(sums)))
        mean = total / count
        return mean + about, tf.maximum(squares / count - tf.square(mean), 0)

    return moments
