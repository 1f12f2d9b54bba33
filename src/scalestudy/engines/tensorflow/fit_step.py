"""Replacements for Keras's train and test functions, in which all workers compute each batch together.

A worker's gradient is that of its part of Keras's loss of the whole batch. The user's optimizer applies the
sum over workers on each of them. Workers also sum one vector with what the batch adds to the loss and to the
metric variables, so that every worker has the metrics of all rows after each batch.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from scalestudy.data.samples import Call, Slice
from scalestudy.engines.keras.layer_context import Working, working
from scalestudy.engines.keras.phases import cut
from scalestudy.engines.keras.private import (
    CompiledParts,
    asks_training,
    compiled_of,
    mask_of,
    parts_replaced,
    weigh,
)
from scalestudy.engines.tensorflow.fit_rows import BatchForm
from scalestudy.engines.tensorflow.replicas import CompiledReplicas, Gradients
from scalestudy.engines.tensorflow.staging import tensors_of
from scalestudy.engines.tensorflow.tensorflow_layers import shared_layers
from scalestudy.util.errors import UserError

TINY = 1e-30
"""Minimum divisor; if all weights are zero, the numerator is zero as well."""


def refuse_unreduced(compiled: CompiledParts) -> None:
    """Check that every loss is reduced to a scalar.

    Raises:
        UserError: If a loss has no reduction.
    """
    for part in compiled.parts:
        if part.loss.reduction in (None, "none"):
            raise UserError(
                'losses whose reduction is "sum_over_batch_size", "sum" or "mean_with_sample_weight"',
                f"{part.loss.name} with reduction {part.loss.reduction!r}",
                "Keep the default reduction.",
            )


def part_of(loss: keras.Loss, worker: Working) -> Callable[..., Any]:
    """Return a function for a worker's part of `loss`; the sum over workers is Keras's loss of the batch.

    Keras divides by the number of rows ("sum_over_batch_size"), by the number of unmasked rows, by the sum of
    weights, or not at all. The divisor is summed over the workers first.
    """
    floatx, rows = keras.config.floatx(), worker.slice
    share = ops.cast(rows.count, floatx) / ops.cast(rows.total, floatx)

    def part(targets: Any, outputs: Any, weights: Any = None) -> Any:
        mask = mask_of(outputs)
        targets, outputs = (
            keras.tree.map_structure(lambda values: ops.convert_to_tensor(values, dtype=loss.dtype), side)
            for side in (targets, outputs)
        )
        values = loss.call(targets, outputs)
        if not len(values.shape):
            warnings.warn(
                f"{loss.name} is one number for a batch: each worker has that of its own rows, the loss is "
                "their mean. It is exact if it gives a number for each sample.",
                stacklevel=2,
            )
        if weights is not None:
            weights = ops.convert_to_tensor(weights, dtype=loss.dtype)
        values, used = weigh(values, weights, mask)
        if loss.reduction == "sum":
            return ops.sum(values)
        by_weight = loss.reduction == "mean_with_sample_weight" and used is not None
        if not by_weight and mask is None:
            return ops.mean(values) * ops.cast(share, values.dtype)
        if worker.sync_sum is None:
            raise UserError(
                "losses that each virtual worker can divide by itself",
                f"{loss.name}, divided by {'weights' if by_weight else 'what a mask leaves'} of all workers",
                "Use another strategy.",
            )
        divisor = ops.sum(used) if by_weight else ops.sum(ops.cast(mask, values.dtype))
        divisor = ops.where(rows.count > 0, divisor, ops.zeros_like(divisor))
        return ops.sum(values) / ops.maximum(worker.sync_sum(ops.stop_gradient(divisor)), TINY)

    return part


BUCKET = 32 * 2**20
"""Bytes of a bucket of gradients, unless they are exchanged in halves; the same as in a study."""


class Steps:
    """The compiled train and test step of a model."""

    def __init__(
        self, model: keras.Model, replicas: CompiledReplicas, form: BatchForm, *, together: bool, xla: bool
    ) -> None:
        self._model, self._replicas, self._form = model, replicas, form
        self._together, self._xla = together, xla
        self._compiled = compiled_of(model)
        refuse_unreduced(self._compiled)
        self._trackers = [self._compiled.tracker, *self._compiled.loss_metrics]
        metrics = self._compiled.metrics
        self._metric_variables = list(metrics.variables) if metrics is not None else []
        self.train = self._function(self._train)
        self.test = self._function(self._test)

    def _function(self, step: Callable[[list[Slice]], Any]) -> Callable[[Sequence[Call]], Any]:
        """Return a function of several calls that returns the metrics after the last of them."""
        compiled = tf.function(step, input_signature=[[_specs(self._form)]], autograph=False)

        def function(calls: Sequence[Call]) -> Any:
            logs: Any = {}
            for call in calls:
                logs = compiled(tensors_of(call))
            return logs

        return function

    def _train(self, slices: list[Slice]) -> Any:
        optimizer, trained = self._model.optimizer, self._model.trainable_variables
        variables = [variable.value for variable in trained]
        reached: list[int] = []
        buckets: list[tuple[int, ...]] = []

        def gradient(part: Slice) -> tuple[Gradients, Any]:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(variables)
                objective, sums = self._objective(part, training=True)
                objective = optimizer.scale_loss(objective)
            values = tape.gradient(objective, variables)
            # Known during tracing and the same on all workers. Variables without a gradient are not updated.
            reached[:] = [index for index, value in enumerate(values) if value is not None]
            gradients = [tf.convert_to_tensor(values[index]) for index in reached]
            known = [trained[index] for index in reached]
            buckets[:] = cut(self._model, known, BUCKET, halves=self._replicas.in_halves)
            return gradients, sums

        def update(gradients: Gradients) -> None:
            optimizer.apply(gradients, [trained[index] for index in reached])

        compute = tf.function(gradient, jit_compile=True, autograph=False) if self._xla else gradient
        with shared_layers(self._model):
            sums = self._replicas.step(
                compute, update, slices, None, buckets=buckets, together=self._together
            )
        return self._count(sums)

    def _test(self, slices: list[Slice]) -> Any:
        sums = self._replicas.total(lambda part: self._objective(part, training=False)[1], slices)
        return self._count(sums)

    def _objective(self, part: Slice, *, training: bool) -> tuple[Any, Any]:
        """Return this worker's part of the loss, and a vector of what it adds to the loss and the metrics."""
        x, y, weights = keras.utils.unpack_x_y_sample_weight(self._form.packed(list(part.inputs.values())))
        floatx = keras.config.floatx()
        count, total = tf.cast(part.count, floatx), tf.cast(part.total, floatx)
        sync = self._replicas.sync_sum if self._synchronises() else None
        worker = Working(part, self._replicas.size * count / total, sync, Counter())
        model, real = self._model, part.count > 0
        with working(worker):
            outputs = model(x, training=training) if asks_training(model) else model(x)
        losses: list[Any] = []
        deltas: list[Any] = []
        objective = tf.zeros([], floatx)
        if self._compiled.loss is not None:
            objective += tf.cast(self._losses(worker, y, outputs, weights, losses), floatx)
        for loss in model.losses:  # counted once per batch, divided by samples
            objective += tf.cast(tf.reduce_sum(loss), floatx) * count / total
        if self._compiled.metrics is not None:
            deltas = self._metric_deltas(y, outputs, weights)
        parts = losses if self._compiled.loss_metrics else []
        means = [
            number for value in (objective, *parts) for number in (value * tf.cast(total, value.dtype), count)
        ]
        flat = [tf.reshape(tf.cast(value, tf.float64), [-1]) for value in (*means, *deltas)]
        sums = tf.concat(flat, 0)
        zero = tf.zeros([], floatx)
        return tf.where(real, objective, zero), tf.where(real, sums, tf.zeros_like(sums))

    def _synchronises(self) -> bool:
        """Return whether layers and losses can sum over workers: not if workers are computed in turn."""
        one_by_one = any(last - first > 1 for first, last in self._replicas.slices)
        return self._together or not one_by_one

    def _losses(self, worker: Working, y: Any, outputs: Any, weights: Any, parts: list[Any]) -> Any:
        """Return Keras's sum of this worker's parts of the losses, and append these to `parts`."""

        def noted(loss: Any) -> Callable[..., Any]:
            part = part_of(loss, worker)

            def call(*given: Any) -> Any:
                parts.append(part(*given))
                return parts[-1]

            return call

        functions = [noted(part.loss) for part in self._compiled.parts]
        variables = [v for metric in self._compiled.loss_metrics for v in metric.variables]
        # Discard Keras's own updates of the mean losses; these come from the vector of sums.
        with (
            parts_replaced(self._compiled, functions),
            keras.StatelessScope(state_mapping=[(v, tf.convert_to_tensor(v.value)) for v in variables]),
        ):
            return self._compiled.loss(y, outputs, weights)

    def _metric_deltas(self, y: Any, outputs: Any, weights: Any) -> list[Any]:
        variables = self._metric_variables
        start = [(v, tf.zeros(v.shape, v.dtype)) for v in variables]
        with keras.StatelessScope(state_mapping=start) as scope:
            self._compiled.metrics.update_state(y, outputs, sample_weight=weights)
        return [scope.get_current_value(v) for v in variables]

    def _count(self, sums: Any) -> Any:
        """Add the sums of a batch over all workers to the metrics, and return the metrics."""
        group = self._replicas.group
        if group.size > 1:
            sums = group.tensor_sum(sums)
        variables = [v for tracker in self._trackers for v in tracker.variables] + self._metric_variables
        sizes = [prod(variable.shape) for variable in variables]
        for variable, part in zip(variables, tf.split(sums, sizes), strict=True):
            added = tf.cast(tf.reshape(part, variable.shape), variable.dtype)
            variable.assign(variable.value + added)
        return self._model.get_metrics_result()


def _specs(form: BatchForm) -> Slice:
    number = tf.TensorSpec([], tf.int64)
    inputs = {str(index): spec for index, spec in enumerate(form.flat)}
    return Slice(
        inputs, {}, number, number, number, number, tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.bool)
    )
