"""The compiled training step: exact gradients of a global batch, however it is divided."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from scalestudy.data.loader import Call
from scalestudy.engines.tensorflow.context import WorkerContext, working
from scalestudy.engines.tensorflow.precision import LossScale
from scalestudy.strategies.base import Block, Gradients, LossScaling, Strategy
from scalestudy.tasks.base import Task

Part = tuple[Any, Any, Any, Any, Any]
"""A device's stack of inputs and targets, and the start, count and total of its slice; see `Share`."""


def make_block(part: Part, index: Any, step: Any) -> Block:
    """The block of step `index` of a device's stack."""
    inputs, targets, start, count, total = part
    return Block(inputs[index], targets[index], start, count, total, step, tf.constant(True))


def parts_of(call: Call) -> list[Part]:
    """A call's shares as tensors in host memory, one part per device."""
    with tf.device("CPU:0"):
        return [
            (
                tf.convert_to_tensor(share.inputs),
                tf.convert_to_tensor(share.targets),
                tf.constant(share.start, tf.int64),
                tf.constant(share.count, tf.int64),
                tf.constant(call.total, tf.int64),
            )
            for share in call.shares
        ]


class Compiled:
    """Compiles a function of a call's parts once, for slices of any size.

    Slices differ between workers and in the last batch of an epoch; one graph serves them all, which
    costs no speed and halves the compilation. XLA needs sizes, and compiles for each.

    Args:
        function: (parts, further scalars) -> tensors.
        fixed: Whether sizes must be known (XLA).
    """

    def __init__(self, function: Callable[..., Any], *, fixed: bool = False) -> None:
        self._function, self._fixed = function, fixed
        self._compiled: Any = None

    def __call__(self, parts: list[Part], *scalars: Any) -> Any:
        """Call the compiled function."""
        if self._compiled is None:
            signature = (
                None
                if self._fixed
                else [_any_size(parts), *(tf.TensorSpec(s.shape, s.dtype) for s in scalars)]
            )
            self._compiled = tf.function(self._function, input_signature=signature, autograph=False)
        return self._compiled(parts, *scalars)


def _any_size(parts: list[Part]) -> list[Any]:
    def spec(tensor: Any) -> Any:
        depth_and_rest = tensor.shape.as_list()
        if len(depth_and_rest) > 1:
            depth_and_rest[1] = None
        return tf.TensorSpec(depth_and_rest, tensor.dtype)

    return [tuple(spec(tensor) for tensor in part) for part in parts]


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
) -> Compiled:
    """Compile (parts of a call, number of its steps, first step) -> sum of losses on this process."""
    variables = task.model.trainable_variables
    gradient = make_gradient(task, strategy, scale=scale, xla=xla, loss_scale=loss_scale)

    def update(gradients: Gradients) -> None:
        optimizer.apply(loss_scale.unscale(gradients), variables)

    scaling = LossScaling(loss_scale.overflow, loss_scale.guard) if loss_scale.active else None

    def one(parts: list[Part], index: Any, step: Any) -> Any:
        return strategy.step(gradient, update, [make_block(part, index, step) for part in parts], scaling)

    def train_call(parts: list[Part], steps: Any, first: Any) -> Any:
        if parts[0][0].shape[0] == 1:
            return one(parts, 0, first)
        _, losses = tf.while_loop(
            lambda index, _: index < steps,
            lambda index, losses: (index + 1, losses + one(parts, index, first + tf.cast(index, tf.int64))),
            (tf.constant(0), tf.constant(0.0, tf.float64)),
            parallel_iterations=1,
        )
        return losses

    return Compiled(train_call, fixed=xla)
