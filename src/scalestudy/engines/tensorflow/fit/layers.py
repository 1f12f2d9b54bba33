"""What layers of the user's own model do while workers share it, where their meaning would depend on them.

Nothing is exchanged for another layer: the model stays the user's own, whatever class it is of.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from scalestudy.engines.context import Working, current
from scalestudy.engines.keras.adapt import GROUP
from scalestudy.engines.keras.noise import DRAWS, SLICES, Noise, drawn_shape, noise_of
from scalestudy.engines.keras.private import all_layers, own_moments, replaced, seed_generators, seed_state
from scalestudy.engines.tensorflow.layers import PHILOX
from scalestudy.util.errors import UserError


def shared_layers(model: keras.Model) -> AbstractContextManager[None]:
    """Within, noise is what one worker would draw, and batch normalisation spans workers if asked to.

    Other layers that draw do so on each worker by seeds of its own.

    Raises:
        UserError: If a layer is asked to normalise over all workers in a way that is not known here.
    """
    calls: dict[Any, dict[str, Callable[..., Any]]] = {}
    for layer in all_layers(model):
        if isinstance(layer, layers.BatchNormalization):
            if layer.synchronized and layer.renorm:
                raise UserError(
                    "batch normalisation either synchronized or with renorm, on several workers",
                    f"both in {layer.name}",
                    "Use one of them.",
                )
            calls[layer] = {"_moments": _moments(layer)}
        elif (noise := noise_of(layer)) is not None:
            calls[layer] = {"call": _noisy(layer, noise)}
        elif getattr(layer, "noise_shape", None) is None:  # else it draws alike for all samples
            calls |= {generator: {"next": _own_seeds(generator)} for generator in seed_generators(layer)}
    return replaced(calls)


def _noisy(layer: keras.layers.Layer, noise: Noise) -> Callable[..., Any]:
    """Keras's own noise for the rows of the whole batch, of which each worker draws its own."""
    plain = layer.call

    def call(inputs: Any, training: bool = False) -> Any:
        worker = current()
        if not training or worker is None:
            return plain(inputs, training=training)
        seed = _moved_on(seed_state(layer).value, worker)
        rows, *sample = tf.unstack(tf.shape(inputs))
        draw = tf.raw_ops.StatelessRandomNormalV2 if noise.normal else tf.raw_ops.StatelessRandomUniformV2
        drawn = _rows_of_noise(draw, drawn_shape(layer, sample), seed, worker.slice.start, rows)
        return noise.applied(inputs, drawn)

    return call


def _moved_on(state: Any, worker: Working) -> Any:
    """The seed of this step; the state is then that of the next one."""
    first = tf.cast(worker.slice.first, state.dtype)
    ahead = tf.stack([tf.zeros_like(first), tf.ones_like(first)])
    seed = tf.identity(state) - ahead * (1 - first)  # the first of those computed in turn has moved it on
    state.assign(seed + ahead)
    return seed


def _rows_of_noise(draw: Callable[..., Any], sample: list[Any], seed: Any, start: Any, rows: Any) -> Any:
    """Rows of what `draw` gives for a whole batch as Keras asks for it, from `start` on.

    A counter of Philox (Salmon et al., SC11) gives four numbers: the worker begins at that of its first.
    """
    values = tf.cast(tf.reduce_prod(tf.stack(sample)), tf.int64)
    begin = start * values
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=tf.cast(seed, tf.int32))
    skipped = tf.stack([tf.cast(begin // GROUP, tf.uint64), tf.zeros([], tf.uint64)])
    count = tf.cast(rows, tf.int64) * values
    drawn = draw(
        shape=tf.reshape(count + GROUP, [1]), key=key, counter=counter + skipped, alg=PHILOX, dtype=tf.float32
    )
    within = begin % GROUP
    return tf.reshape(drawn[within : within + count], tf.stack([rows, *sample]))


def _own_seeds(generator: Any) -> Callable[..., Any]:
    """Stands in for `next` of a seed generator: each worker has seeds of its own, the first one Keras's.

    What is drawn by them depends on how the batch is divided, and no two workers draw the same.
    """
    plain = generator.next

    def next_seed(ordered: bool = True) -> Any:
        worker = current()
        if worker is None or worker.calls is None:
            return plain(ordered)
        state, again = generator.state.value, worker.calls[id(generator)]
        worker.calls[id(generator)] += 1
        seed = tf.identity(state) - tf.constant([0, 1], state.dtype) if again else _moved_on(state, worker)
        apart = tf.cast(worker.slice.start, state.dtype) * SLICES + again * DRAWS
        return seed + tf.stack([apart, tf.zeros_like(apart)])

    return next_seed


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
