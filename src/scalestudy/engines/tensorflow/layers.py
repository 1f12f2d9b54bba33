"""Layers that behave the same under every strategy."""

import math
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from scalestudy.engines.keras.adapt import GROUP, RowNoise, draw_rows
from scalestudy.engines.keras.layer_context import Working, collect, current
from scalestudy.engines.keras.private import exchange_variables
from scalestudy.engines.tensorflow.staging import gpu

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
        own = {}
        for name in ("moving_mean", "moving_variance"):
            own[name] = keras.Variable(
                getattr(self, name).numpy(),
                dtype=self.variable_dtype,
                trainable=False,
                autocast=False,
                synchronization="on_read",
                aggregation="only_first_replica",
                name=name,
            )
        exchange_variables(self, own)

    def call(
        self,
        inputs: Any,
        training: bool | None = None,
        mask: Any = None,
    ) -> Any:
        """Normalise `inputs` (shape [B, ..., C])."""
        if mask is not None:
            raise NotImplementedError(
                "Expected no mask. Received: a mask. Normalise before masking."
            )
        worker = current()
        moments = collect(tf.compat.v1.get_default_graph())
        x = inputs
        dtype = inputs.dtype
        if inputs.dtype in (tf.float16, tf.bfloat16):
            dtype = tf.float32
            # On CPUs the fused kernel takes six times as long in these types as in float32.
            if not (self._fused(inputs) and gpu(0)):
                x = tf.cast(inputs, tf.float32)
        gamma, beta = self._scale_and_offset(x.shape[-1:], dtype)
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
                moments.add(
                    self,
                    tf.size(x, tf.int64) // x.shape[-1],
                    out.batch_mean,
                    variance,
                )
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

    def _scale_and_offset(self, shape: Any, dtype: Any) -> tuple[Any, Any]:
        if self.scale:
            gamma = tf.cast(self.gamma.value, dtype)
        else:
            gamma = tf.ones(shape, dtype)
        if self.center:
            beta = tf.cast(self.beta.value, dtype)
        else:
            beta = tf.zeros(shape, dtype)
        return gamma, beta

    def _fused(self, x: Any) -> bool:
        return len(x.shape) == 4 and x.dtype != tf.float64

    def _synchronised(self, x: Any, worker: Working) -> tuple[Any, Any]:
        """Return mean and biased variance over the global batch, by one sum over the workers.

        Values are centred on the moving mean, which is the same on all workers. Without centring, float32
        would lose the variance of channels with a large mean.
        """
        assert worker.sync_sum is not None
        # Any centre gives the same mean and variance, so it has no gradient.
        about = tf.stop_gradient(tf.cast(self.moving_mean.value, x.dtype))
        # A slice without samples holds one row, which must not count.
        counts = tf.cast(worker.slice.count > 0, x.dtype)
        rows = tf.cast(worker.slice.count, x.dtype)
        pixels = rows * tf.cast(tf.reduce_prod(tf.shape(x)[1:-1]), x.dtype)
        centred = x - about
        sums = counts * tf.reduce_sum(centred, self._reduction_axes)
        squares = counts * tf.reduce_sum(tf.square(centred), self._reduction_axes)
        packed = worker.sync_sum(tf.concat([sums, squares, tf.reshape(pixels, [1])], 0))
        sums, squares, pixels = tf.split(packed, [x.shape[-1], x.shape[-1], 1])
        mean = sums / pixels
        # Rounding may make the difference of two nearly equal numbers negative.
        variance = tf.maximum(squares / pixels - tf.square(mean), 0)
        return mean + about, variance

    def _move(
        self,
        mean: Any,
        variance: Any,
        worker: Working | None,
        shared: bool = False,
    ) -> None:
        for variable, value in (
            (self.moving_mean, mean),
            (self.moving_variance, variance),
        ):
            dtype = variable.value.dtype
            keep = tf.constant(self.momentum, dtype)
            add = 1 - keep
            if worker is not None and not shared:
                # Each worker adds by its samples; of the parts that a worker computes in turn, only the
                # first lets the old value decay.
                add *= tf.cast(worker.share, dtype)
                keep = tf.where(worker.slice.first, keep, tf.ones([], dtype))
            variable.value.assign(variable.value * keep + tf.cast(value, dtype) * add)


class _Drawing(RowNoise):
    def drawn(
        self,
        inputs: Any,
        worker: Working,
        *,
        normal: bool,
    ) -> Any:
        draw = tf.raw_ops.StatelessRandomUniformV2
        if normal:
            draw = tf.raw_ops.StatelessRandomNormalV2
        start = worker.slice.start
        step = worker.slice.step
        # Static lengths where they are known: XLA and GPUs need them.
        lengths = tf.unstack(tf.shape(inputs))
        for axis, fixed in enumerate(inputs.shape):
            if fixed is not None:
                lengths[axis] = fixed
        rows, *known = lengths
        key, groups, sample = self.next_draw(known, worker)
        # The counter of the slice's first row in the stream of the global batch; the step is its upper half.
        first = tf.cast(start * tf.cast(groups, start.dtype), tf.uint64)
        noise = draw(
            shape=tf.stack([rows, groups * GROUP]),
            key=tf.constant([key], tf.uint64),
            counter=tf.stack([first, tf.cast(step, tf.uint64)]),
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
