"""Behaviour of layers in `fit` on several workers, for layers that would depend on the number of workers.

Methods of the layers are replaced temporarily, so the user's model keeps its own layers and classes.
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
    """Make noise in the block the same as on one worker, and synchronise batch normalisation if it asks to.

    Other layers that draw random numbers get different seeds on each worker.

    Raises:
        UserError: If a layer combines synchronised batch normalisation with renormalisation.
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
        elif getattr(layer, "noise_shape", None) is None:  # else all samples share the numbers
            calls |= {generator: {"next": _own_seeds(generator)} for generator in seed_generators(layer)}
    return replaced(calls)


def _noisy(layer: keras.layers.Layer, noise: Noise) -> Callable[..., Any]:
    """Return a replacement for `call` by which each worker draws its rows of Keras's noise for the batch."""
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
    """Return the seed of this step and advance the state to the next step."""
    first = tf.cast(worker.slice.first, state.dtype)
    ahead = tf.stack([tf.zeros_like(first), tf.ones_like(first)])
    seed = tf.identity(state) - ahead * (1 - first)  # the first slice computed in turn advanced the state
    state.assign(seed + ahead)
    return seed


def _rows_of_noise(draw: Callable[..., Any], sample: list[Any], seed: Any, start: Any, rows: Any) -> Any:
    """Return `rows` rows, from `start` on, of the numbers that Keras draws for the whole batch.

    A counter of Philox (Salmon et al., SC11) gives four numbers. The worker starts at the counter of its
    first number.
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
    """Return a replacement for `next` of a seed generator: the first worker has Keras's seeds, others differ.

    No two workers draw the same numbers, so the noise depends on the division of the batch.
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
    """Return a function for mean and variance over the worker's rows, or all rows (`synchronized=True`)."""
    plain = own_moments(layer)

    def moments(inputs: Any, mask: Any) -> Any:
        worker = current()
        if worker is None:
            return plain(inputs, mask)
        if worker.sync_sum is None or not layer.synchronized:
            # For a padding row, return the moving statistics, so that they do not change.
            moving = layer.moving_mean.value, layer.moving_variance.value
            return tuple(
                tf.where(worker.slice.count > 0, value, tf.cast(before, value.dtype))
                for value, before in zip(plain(inputs, mask), moving, strict=True)
            )
        axis = layer.axis % len(inputs.shape)
        axes = [other for other in range(len(inputs.shape)) if other != axis]
        weights = tf.ones_like(inputs) if mask is None else tf.cast(mask, inputs.dtype)[..., None]
        weights = tf.where(worker.slice.count > 0, weights, tf.zeros_like(weights)) * tf.ones_like(inputs)
        # Centred on the moving mean, the same on all workers; otherwise float32 would lose the variance.
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
