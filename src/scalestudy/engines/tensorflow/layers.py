"""Layers that mean the same under every strategy: batch normalisation and dropout."""

import hashlib
import itertools
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from keras import layers

from scalestudy.data.loading.slices import Slice
from scalestudy.engines.keras.private import all_layers, exchange_variables, is_composed
from scalestudy.util.errors import UserError


class Working(NamedTuple):
    """A worker at its slice.

    Attributes:
        slice: Of one step; its numbers are scalar tensors.
        share: workers · count / total: weight of its statistics in the mean over workers (float).
        sync_sum: Sums a tensor over all workers, differentiably; None for statistics per worker.
        calls: How often each layer that draws has been called so far, by its number.
    """

    slice: Slice
    share: Any
    sync_sum: Callable[[Any], Any] | None = None
    calls: Counter[int] | None = None


_local = threading.local()  # a thread each: TensorFlow traces the replicas of a node in threads


@contextmanager
def working(worker: Working) -> Iterator[None]:
    """Let layers see `worker` for the duration of the block."""
    before = current()
    _local.worker = worker
    try:
        yield
    finally:
        _local.worker = before


def current() -> Working | None:
    """The worker being traced, or None outside a training step."""
    return getattr(_local, "worker", None)


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


PHILOX = 1
GROUP = 4  # float32 values that one Philox counter gives


@keras.saving.register_keras_serializable(package="scalestudy")
class Dropout(keras.layers.Layer):
    """Dropout under which any number of workers draws the same noise for the same global batch.

    The noise is a counter-based stream (Philox; Salmon et al., SC11): a worker starts at the counter
    of its slice's first sample and draws its own rows only.

    Args:
        rate: Share of the values set to zero.
        seed: Seed of the run.
        index: Number of this layer in its model, so that layers differ.
        spatial: Drop whole channels (of inputs [B, ..., C]).
    """

    def __init__(self, rate: float, seed: int, index: int, spatial: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.draw_by(seed, index, spatial=spatial)

    def draw_by(self, seed: int, index: int, *, spatial: bool) -> None:
        """Draw by this seed of the run, as this layer of its model."""
        self.seed, self.index, self.spatial = seed, index, spatial
        digest = hashlib.sha256(f"dropout {seed} {index}".encode()).digest()
        self._key = int.from_bytes(digest[:8], "little")

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Drop values of `inputs` (shape [B, ...]) in training."""
        worker = current()
        if not training or self.rate == 0 or worker is None:
            return inputs
        start, step = worker.slice.start, worker.slice.step
        again = self._call_of(worker)
        sample = [1] * (len(inputs.shape) - 2) + [inputs.shape[-1]] if self.spatial else _sample_of(inputs)
        values = math.prod(sample)
        groups = -(-values // GROUP)
        rows = tf.shape(inputs)[0]
        noise = tf.raw_ops.StatelessRandomUniformV2(
            shape=tf.stack([rows, groups * GROUP]),
            key=tf.constant([(self._key + again) % 2**64], tf.uint64),
            counter=tf.stack(
                [tf.cast(start * tf.cast(groups, start.dtype), tf.uint64), tf.cast(step, tf.uint64)]
            ),
            alg=PHILOX,
            dtype=tf.float32,
        )
        kept = tf.reshape(noise[:, :values], [rows, *sample]) >= self.rate
        scale = tf.constant(1 / (1 - self.rate), inputs.dtype)
        return inputs * (tf.cast(kept, inputs.dtype) * scale)

    def _call_of(self, worker: Working) -> int:
        """How often this layer has been called before in this step: each time it draws anew."""
        if worker.calls is None:
            return 0
        worker.calls[self.index] += 1
        return worker.calls[self.index] - 1

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same layer again."""
        own = {"rate": self.rate, "seed": self.seed, "index": self.index, "spatial": self.spatial}
        return {**super().get_config(), **own}


def _sample_of(inputs: Any) -> list[Any]:
    """Lengths of one sample's axes; of sequences of any length a tensor."""
    return [
        tf.shape(inputs)[axis] if length is None else length
        for axis, length in enumerate(inputs.shape)
        if axis
    ]


def adapt(model: keras.Model, *, seed: int, sync_batch_norm: bool) -> keras.Model:
    """The same model with our batch normalisation and dropout in place of Keras's.

    Weights are carried over; all other layers are shared with the given model. Layers cannot be exchanged
    inside of layers and models of other classes, as those of other libraries: they are changed in place.

    Args:
        model: Built.
        seed: Seed of the run, for dropout.
        sync_batch_norm: Whether the run asks for synchronised statistics.

    Raises:
        UserError: If synchronised batch normalisation is asked for and a layer cannot have it.
    """
    changed = [layer for layer in all_layers(model) if _replaceable(layer)]
    stuck = _stuck(model)
    if sync_batch_norm and stuck:
        raise UserError(
            "batch normalisation over the last axis, without renormalisation, for sync_batch_norm",
            f"another in the layer {stuck[0]}",
            "Put channels last, or set sync_batch_norm = false.",
        )
    if not changed:
        return model
    number = itertools.count()

    def replace(layer: keras.layers.Layer) -> keras.layers.Layer:
        if not _replaceable(layer):
            return layer
        common = {"name": layer.name, "dtype": layer.dtype_policy}
        if isinstance(layer, layers.BatchNormalization):
            ours = BatchNorm.from_config({**layer.get_config(), "synchronized": False})
            ours.trainable = layer.trainable
            return ours
        return Dropout(
            layer.rate, seed, next(number), spatial=not isinstance(layer, layers.Dropout), **common
        )

    if is_composed(model) and all(map(is_composed, _models(model))):
        clone = keras.models.clone_model(model, clone_function=replace, recursive=True)
        clone.set_weights(model.get_weights())
        model = clone
    for layer in all_layers(model):
        if _replaceable(layer):
            _change(layer, seed, number)
    return model


def _models(model: keras.Model) -> list[keras.Model]:
    return [layer for layer in all_layers(model) if isinstance(layer, keras.Model)]


def _change(layer: keras.layers.Layer, seed: int, number: Iterator[int]) -> None:
    """Make ours of one of Keras's layers, where it is."""
    if isinstance(layer, layers.BatchNormalization):
        layer.__class__ = BatchNorm
        layer.keep_statistics()
    else:
        spatial = not isinstance(layer, layers.Dropout)
        layer.__class__ = Dropout
        layer.draw_by(seed, next(number), spatial=spatial)


def _replaceable(layer: keras.layers.Layer) -> bool:
    if isinstance(layer, BatchNorm | Dropout):
        return False
    if isinstance(layer, layers.BatchNormalization):
        return not layer.renorm and layer.axis in (
            -1,
            len(layer.input_spec.axes or {}) - 1,
            layer.input_spec.ndim - 1,
        )
    if isinstance(layer, layers.Dropout):
        return layer.noise_shape is None
    return isinstance(
        layer, layers.SpatialDropout1D | layers.SpatialDropout2D | layers.SpatialDropout3D
    ) and (getattr(layer, "data_format", "channels_last") == "channels_last")


def _stuck(model: keras.Model) -> list[str]:
    """Names of the batch normalisations that cannot be ours."""
    return [
        layer.name
        for layer in all_layers(model)
        if isinstance(layer, layers.BatchNormalization)
        and not isinstance(layer, BatchNorm)
        and not _replaceable(layer)
    ]
