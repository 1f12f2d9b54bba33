"""Batch normalisation that means the same under every strategy."""

from typing import Any

import keras
import tensorflow as tf

from scalestudy.engines.keras.private import exchange_variables
from scalestudy.engines.tensorflow.context import Working, current


@keras.saving.register_keras_serializable(package="scalestudy")
class BatchNorm(keras.layers.BatchNormalization):
    """Keras's batch normalisation (last axis), with statistics per worker or over the global batch.

    Per worker, it normalises with the statistics of the worker's own slice (fused where TensorFlow
    can). Synchronised, it sums counts, means and squares over all workers, weighted by the samples
    in each slice, so uneven slices are exact. By given statistics (frozen, or `training=False` in a
    step) it takes the plain formula: the fused kernel's gradient is deterministic on no GPU.

    The moving statistics move by the mean of the workers' statistics, weighted by their samples.
    Each worker adds its own part, so that *the mean over workers* is exact; it is taken before
    evaluation and saving.
    """

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create gamma, beta and the moving statistics, which every replica keeps for itself."""
        axis = self.axis if self.axis >= 0 else self.axis + len(input_shape)
        if axis != len(input_shape) - 1 or self.renorm:
            raise ValueError(
                "Expected normalisation over the last axis, without renormalisation. "
                f"Received: axis={self.axis}, renorm={self.renorm}. Use channels last."
            )
        shape = (input_shape[-1],)
        if self.scale:
            self.gamma = self.add_weight(
                shape=shape, name="gamma", initializer=self.gamma_initializer,
                regularizer=self.gamma_regularizer, constraint=self.gamma_constraint, autocast=False,
            )  # fmt: skip
        if self.center:
            self.beta = self.add_weight(
                shape=shape, name="beta", initializer=self.beta_initializer,
                regularizer=self.beta_regularizer, constraint=self.beta_constraint, autocast=False,
            )  # fmt: skip
        self.moving_mean = self._statistic("moving_mean", shape, self.moving_mean_initializer)
        self.moving_variance = self._statistic("moving_variance", shape, self.moving_variance_initializer)
        self._reduction_axes = list(range(len(input_shape) - 1))

    def keep_statistics(self) -> None:
        """Keep the statistics of a layer that was Keras's own as ours does."""
        kept = {name: getattr(self, name) for name in ("moving_mean", "moving_variance")}
        exchange_variables(
            self, {name: self._statistic(name, old.shape, old.numpy()) for name, old in kept.items()}
        )

    def _statistic(self, name: str, shape: tuple[int | None, ...], initializer: Any) -> keras.Variable:
        # A mean on reading would be a collective, which a callback that reads weights on rank 0 alone would
        # wait for in vain. The mean is taken by all, when it is needed.
        return keras.Variable(
            initializer, shape=shape, dtype=self.variable_dtype, trainable=False, autocast=False,
            synchronization="on_read", aggregation="only_first_replica", name=name,
        )  # fmt: skip

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Normalise `inputs` (shape [B, ..., C])."""
        if mask is not None:
            raise NotImplementedError("Expected no mask. Received: a mask. Normalise before masking.")
        worker = current()
        wide = inputs.dtype in (tf.float16, tf.bfloat16)
        x = tf.cast(inputs, tf.float32) if wide and not self._fused(inputs) else inputs
        dtype = tf.float32 if wide else x.dtype
        gamma = tf.cast(self.gamma.value, dtype) if self.scale else tf.ones(x.shape[-1:], dtype)
        beta = tf.cast(self.beta.value, dtype) if self.center else tf.zeros(x.shape[-1:], dtype)
        if not training or not self.trainable:
            mean = tf.cast(self.moving_mean.value, dtype)
            variance = tf.cast(self.moving_variance.value, dtype)
            # Fused only outside of steps, where no gradient is taken.
            if worker is None and self._fused(x):
                return tf.raw_ops.FusedBatchNormV3(
                    x=x, scale=gamma, offset=beta, mean=mean, variance=variance,
                    epsilon=self.epsilon, is_training=False,
                ).y  # fmt: skip
        elif worker is not None and worker.sync_sum is not None:
            x = tf.cast(x, dtype)
            mean, variance = self._synchronised(x, worker)
            self._move(mean, variance, worker, shared=True)
        elif self._fused(x):
            out = tf.raw_ops.FusedBatchNormV3(
                x=x, scale=gamma, offset=beta, mean=[], variance=[],
                epsilon=self.epsilon, is_training=True,
            )  # fmt: skip
            count = tf.cast(tf.size(x) // x.shape[-1], dtype)
            # The op returns the unbiased variance; Keras, and the other branches, keep the biased.
            self._move(out.batch_mean, out.batch_variance * ((count - 1) / count), worker)
            return out.y
        else:
            mean, variance = tf.nn.moments(x, self._reduction_axes)
            self._move(mean, variance, worker)
        slope = gamma * tf.math.rsqrt(variance + tf.cast(self.epsilon, dtype))
        return tf.cast(tf.cast(x, dtype) * slope + (beta - mean * slope), inputs.dtype)

    def _fused(self, x: Any) -> bool:
        return len(x.shape) == 4 and x.dtype != tf.float64

    def _synchronised(self, x: Any, worker: Working) -> tuple[Any, Any]:
        """Mean and biased variance over the global batch, by one sum over the workers.

        Squares are taken about the moving mean, which every worker knows: about zero, float32 would
        lose the variance of channels whose mean is large.
        """
        assert worker.sync_sum is not None
        about = tf.stop_gradient(self._shared_mean(x.dtype))
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

    def _shared_mean(self, dtype: Any) -> Any:
        # Synchronised statistics are alike on all workers, and so is their moving mean.
        return tf.cast(self.moving_mean.value, dtype)

    def _move(self, mean: Any, variance: Any, worker: Working | None, shared: bool = False) -> None:
        for variable, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            dtype = variable.value.dtype
            keep = tf.constant(self.momentum, dtype)
            add = 1 - keep
            if worker is not None and not shared:
                add *= tf.cast(worker.share, dtype)
                keep = tf.where(worker.slice.first, keep, tf.ones([], dtype))
            variable.value.assign(variable.value * keep + tf.cast(value, dtype) * add)
