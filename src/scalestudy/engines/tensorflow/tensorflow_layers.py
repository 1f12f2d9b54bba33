"""Layers that behave the same under every strategy: those of a study's model, and those of a script's."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from scalestudy.engines.keras.adapt import (
    DRAWS,
    GROUP,
    SLICES,
    Noise,
    RowNoise,
    draw_rows,
    drawn_shape,
    noise_of,
)
from scalestudy.engines.keras.layer_context import Working, collect, current
from scalestudy.engines.keras.private import (
    all_layers,
    exchange_variables,
    own_moments,
    replace,
    seed_generators,
    seed_state,
)
from scalestudy.engines.tensorflow.staging import gpu
from scalestudy.util.errors import UserError

PHILOX = 1


class BatchNorm(keras.layers.BatchNormalization):
    """Keras's batch normalisation (last axis), with statistics per worker or over the global batch.

    Per worker, it normalises with the statistics of the worker's own slice, by the fused kernel if
    possible. Synchronised, it sums counts, values and squares over all workers, so uneven slices are
    exact. With given statistics (frozen, or `training=False` in a step) it uses the plain formula,
    because the gradient of the fused kernel is not deterministic on GPUs.

    The moving statistics are updated by the mean of the workers' statistics, weighted by their samples.
    Each worker adds its own part, so *the mean over workers*, computed before evaluation and saving, is
    exact.

    Within `collecting`, it normalises with the statistics of the slice, and reports them instead of moving.
    """

    keeps_statistics = True

    def keep_statistics(self) -> None:
        """Give every replica its own moving statistics."""
        # With a mean on reading, a callback that reads weights on rank 0 only would wait forever for the
        # collective. So every replica has its own values, and all compute the mean when it is needed.
        exchange_variables(
            self,
            {
                name: keras.Variable(
                    getattr(self, name).numpy(),
                    dtype=self.variable_dtype,
                    trainable=False,
                    autocast=False,
                    synchronization="on_read",
                    aggregation="only_first_replica",
                    name=name,
                )
                for name in ("moving_mean", "moving_variance")
            },
        )

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Normalise `inputs` (shape [B, ..., C])."""
        if mask is not None:
            raise NotImplementedError("Expected no mask. Received: a mask. Normalise before masking.")
        worker, moments = current(), collect(tf.compat.v1.get_default_graph())
        wide = inputs.dtype in (tf.float16, tf.bfloat16)
        # On CPUs the fused kernel takes six times as long in these types as in float32.
        x = inputs if not wide or (self._fused(inputs) and gpu(0)) else tf.cast(inputs, tf.float32)
        dtype = tf.float32 if wide else x.dtype
        gamma = tf.cast(self.gamma.value, dtype) if self.scale else tf.ones(x.shape[-1:], dtype)
        beta = tf.cast(self.beta.value, dtype) if self.center else tf.zeros(x.shape[-1:], dtype)
        if not (training or moments) or not self.trainable:
            mean = tf.cast(self.moving_mean.value, dtype)
            variance = tf.cast(self.moving_variance.value, dtype)
            # Fused only outside training steps, where no gradient is computed.
            if worker is None and self._fused(x):
                y = tf.raw_ops.FusedBatchNormV3(
                    x=x,
                    scale=gamma,
                    offset=beta,
                    mean=mean,
                    variance=variance,
                    epsilon=self.epsilon,
                    is_training=False,
                ).y
                return tf.cast(y, inputs.dtype)
        elif worker is not None and worker.sync_sum is not None:
            x = tf.cast(x, dtype)
            mean, variance = self._synchronised(x, worker)
            self._move(mean, variance, worker, shared=True)
        elif self._fused(x):
            out = tf.raw_ops.FusedBatchNormV3(
                x=x,
                scale=gamma,
                offset=beta,
                mean=[],
                variance=[],
                epsilon=self.epsilon,
                is_training=True,
            )
            count = tf.cast(tf.size(x) // x.shape[-1], dtype)
            # The op returns the unbiased variance; Keras and the other branches use the biased one.
            variance = out.batch_variance * ((count - 1) / count)
            if moments:
                moments.add(self, tf.size(x, tf.int64) // x.shape[-1], out.batch_mean, variance)
            else:
                self._move(out.batch_mean, variance, worker)
            return tf.cast(out.y, inputs.dtype)
        else:
            mean, variance = tf.nn.moments(x, self._reduction_axes)
            if moments:
                moments.add(self, tf.size(x, tf.int64) // x.shape[-1], mean, variance)
            else:
                self._move(mean, variance, worker)
        slope = gamma * tf.math.rsqrt(variance + tf.cast(self.epsilon, dtype))
        return tf.cast(tf.cast(x, dtype) * slope + (beta - mean * slope), inputs.dtype)

    def _fused(self, x: Any) -> bool:
        return len(x.shape) == 4 and x.dtype != tf.float64

    def _synchronised(self, x: Any, worker: Working) -> tuple[Any, Any]:
        """Return mean and biased variance over the global batch, by one sum over the workers.

        Values are centred on the moving mean, which is the same on all workers. Without centring, float32
        would lose the variance of channels with a large mean.
        """
        assert worker.sync_sum is not None
        about = tf.stop_gradient(tf.cast(self.moving_mean.value, x.dtype))
        counts = tf.cast(worker.slice.count > 0, x.dtype)
        rows = tf.cast(worker.slice.count, x.dtype)
        pixels = rows * tf.cast(tf.reduce_prod(tf.shape(x)[1:-1]), x.dtype)
        centred = x - about
        sums = counts * tf.reduce_sum(centred, self._reduction_axes)
        squares = counts * tf.reduce_sum(tf.square(centred), self._reduction_axes)
        packed = worker.sync_sum(tf.concat([sums, squares, tf.reshape(pixels, [1])], 0))
        sums, squares, pixels = tf.split(packed, [x.shape[-1], x.shape[-1], 1])
        mean = sums / pixels
        variance = tf.maximum(squares / pixels - tf.square(mean), 0)
        return mean + about, variance

    def _move(self, mean: Any, variance: Any, worker: Working | None, shared: bool = False) -> None:
        for variable, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            dtype = variable.value.dtype
            keep = tf.constant(self.momentum, dtype)
            add = 1 - keep
            if worker is not None and not shared:
                add *= tf.cast(worker.share, dtype)
                keep = tf.where(worker.slice.first, keep, tf.ones([], dtype))
            variable.value.assign(variable.value * keep + tf.cast(value, dtype) * add)


class _Drawing(RowNoise):
    def drawn(self, inputs: Any, worker: Working, *, normal: bool) -> Any:
        draw = tf.raw_ops.StatelessRandomNormalV2 if normal else tf.raw_ops.StatelessRandomUniformV2
        start, step = worker.slice.start, worker.slice.step
        lengths = zip(tf.unstack(tf.shape(inputs)), inputs.shape, strict=True)
        rows, *known = (length if fixed is None else fixed for length, fixed in lengths)
        key, groups, sample = self.next_draw(known, worker)
        noise = draw(
            shape=tf.stack([rows, groups * GROUP]),
            key=tf.constant([key], tf.uint64),
            counter=tf.stack(
                [tf.cast(start * tf.cast(groups, start.dtype), tf.uint64), tf.cast(step, tf.uint64)]
            ),
            alg=PHILOX,
            dtype=tf.float32,
        )
        return tf.reshape(noise[:, : math.prod(sample)], [rows, *sample])


def replace_layer(layer: keras.layers.Layer, seed: int, numbers: Iterator[int]) -> None:
    """See `ReplaceLayer`."""
    if isinstance(layer, layers.BatchNormalization):
        layer.__class__ = BatchNorm
        layer.keep_statistics()
    else:
        draw_rows(layer, _Drawing, seed, next(numbers))


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
    return replace(calls)


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
