"""The compiled training step: exact gradients of a global batch, however it is divided."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from scalestudy.data.loader import Call
from scalestudy.strategies.base import Block, Gradients, LossScaling, Strategy
from scalestudy.tasks.base import Task
from scalestudy.training.context import WorkerContext, working
from scalestudy.training.precision import LossScale


def make_block(part: tuple[Any, ...], index: Any, step: Any) -> Block:
    """The block of step `index` of a device's stack (see `packed_call`)."""
    inputs, targets, start, count, total = part
    return Block(inputs[index], targets[index], start, count, total, step, tf.constant(True))


def packed_call(strategy: Strategy, call: Call) -> Any:
    """A call's shares as tensors, one part per device, packed for the strategy."""
    return strategy.pack(
        [
            (
                tf.convert_to_tensor(share.inputs),
                tf.convert_to_tensor(share.targets),
                tf.constant(share.start, tf.int64),
                tf.constant(share.count, tf.int64),
                tf.constant(call.total, tf.int64),
            )
            for share in call.shares
        ]
    )


def scaled_inputs(inputs: Any, scale: float) -> Any:
    """Stored integers -> [0, 1] in Keras's float type."""
    return tf.cast(inputs, keras.config.floatx()) * tf.constant(scale, keras.config.floatx())


def make_gradient(
    task: Task, strategy: Strategy, *, scale: float, xla: bool, loss_scale: LossScale
) -> Callable[[Block], tuple[Gradients, Any]]:
    """The function a worker computes: its part of the global batch's gradient, and its losses' sum.

    The gradient is that of (sum of the slice's losses) / (samples of the *global* batch), so that the
    sum over workers is the gradient of the global mean, whatever the sizes of the slices.
    """
    model = task.model
    variables = [variable.value for variable in model.trainable_variables]
    sync_sum = strategy.sync_sum()

    def gradient(block: Block) -> tuple[Gradients, Any]:
        floatx = keras.config.floatx()
        total = tf.cast(block.total, floatx)
        share = strategy.replicas * tf.cast(block.count, floatx) / total
        real = tf.cast(block.count > 0, floatx)
        context = WorkerContext(
            block.step, block.start, block.count, block.total, share, block.first, sync_sum
        )
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            with working(context):
                outputs = model(scaled_inputs(block.inputs, scale), training=True)
            losses = real * tf.reduce_sum(tf.cast(task.loss(block.targets, outputs), floatx))
            objective = losses / total
            if model.losses:  # regularisers: once for the global batch, shared out by samples
                objective += tf.add_n(model.losses) * tf.cast(block.count, floatx) / total
            objective = loss_scale.scale(objective)
        gradients = tape.gradient(objective, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(each) for each in gradients], tf.cast(losses, tf.float64)

    return tf.function(gradient, jit_compile=True, autograph=False) if xla else gradient


def make_train_call(
    task: Task,
    strategy: Strategy,
    optimizer: keras.Optimizer,
    *,
    scale: float,
    xla: bool,
    loss_scale: LossScale,
) -> Callable[[Any, Any, Any], Any]:
    """Compile (packed call, number of its steps, first step) -> sum of losses on this process."""
    variables = task.model.trainable_variables
    gradient = make_gradient(task, strategy, scale=scale, xla=xla, loss_scale=loss_scale)

    def update(gradients: Gradients) -> None:
        optimizer.apply(loss_scale.unscale(gradients), variables)

    scaling = LossScaling(loss_scale.overflow, loss_scale.guard) if loss_scale.active else None

    def one(packed: Any, index: Any, step: Any) -> Any:
        return strategy.step(gradient, update, lambda part: make_block(part, index, step), packed, scaling)

    @tf.function(autograph=False)
    def train_call(packed: Any, steps: Any, first: Any) -> Any:
        if _depth(strategy, packed) == 1:
            return one(packed, 0, first)
        _, losses = tf.while_loop(
            lambda index, _: index < steps,
            lambda index, losses: (index + 1, losses + one(packed, index, first + tf.cast(index, tf.int64))),
            (tf.constant(0), tf.constant(0.0, tf.float64)),
            parallel_iterations=1,
        )
        return losses

    return train_call


def _depth(strategy: Strategy, packed: Any) -> int:
    part = packed[0]
    local = getattr(part, "values", None)
    return int((local[0] if local is not None else part).shape[0])
