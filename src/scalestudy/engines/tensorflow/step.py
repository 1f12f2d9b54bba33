"""Parts of the compiled training step: exact gradients of a global batch, for any division into slices."""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import keras
import tensorflow as tf

from scalestudy.data.samples import Slice
from scalestudy.engines.buckets import Buckets
from scalestudy.engines.context import Working, working
from scalestudy.engines.keras.layers import kept
from scalestudy.engines.keras.phases import Phase
from scalestudy.engines.tensorflow.gradients import Gradient, Gradients
from scalestudy.engines.tensorflow.loss_scale import LossScale
from scalestudy.engines.tensorflow.staging import gpu, in_floatx, scaled_inputs
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas
from scalestudy.tasks.task import Task

WIRE = {"none": None, "fp16": tf.float16, "bf16": tf.bfloat16}
"""Type in which gradients are summed, by `launch.compression`; None for the type of the gradients."""


def rounded(gradient: Gradient, dtype: Any) -> Gradient:
    """Return a function that casts the gradients of `gradient` to `dtype`."""

    def smaller(part: Slice) -> tuple[Gradients, Any]:
        gradients, losses = gradient(part)
        return [tf.cast(value, dtype) for value in gradients], losses

    return smaller


def step_of(part: Slice, index: Any, place: str | None) -> Slice:
    """Return the slice of step `index` of a call, whose arrays are on the device `place`."""
    with tf.device(place):  # without it, TensorFlow would copy all arrays to the first GPU and back
        part = part.mapped(itemgetter(index), step=part.step + tf.cast(index, tf.int64))
    return part._replace(first=tf.constant(True))


def slices_of(call: Sequence[Slice], index: Any, replicas: CompiledReplicas, phase: Phase) -> list[Slice]:
    """Return the slices of step `index` of a call, with their rows.

    If updates can overtake each other, on remote workers, set the optimizer's step count to this step.
    """
    parts = [step_of(part, index, gpu(device)) for device, part in enumerate(call)]
    if replicas.remote:
        phase.optimizer.iterations.assign(parts[0].step - phase.first)
    return [replicas.read(part, training=True) for part in parts]


def gradient_of(
    task: Task,
    variables: Sequence[Any],
    size: int,
    sync_sum: Callable[[Any], Any] | None,
    *,
    scale: float | None,
    frozen: Sequence[str],
    loss_scale: LossScale | None,
) -> Callable[[Slice], tuple[Gradients, Any]]:
    """Return a traced function: slice -> gradients of `variables`, and the sum of losses, of a worker."""
    model = task.model

    def gradient(part: Slice) -> tuple[Gradients, Any]:
        targets = in_floatx(part.targets) if scale is None else part.targets
        part = part._replace(inputs=scaled_inputs(part.inputs, scale), targets=targets)
        floatx = keras.config.floatx()
        total = tf.cast(part.total, floatx)
        share = size * tf.cast(part.count, floatx) / total
        real = tf.cast(part.count > 0, floatx)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            with working(Working(part, share, sync_sum, Counter())), kept(model, frozen):
                if task.training_losses is not None:
                    sample_losses = task.training_losses(model, task.loss, part.inputs, part.targets)
                else:
                    sample_losses = task.loss(part.targets, model(part.inputs, training=True))
            losses = real * tf.reduce_sum(tf.cast(sample_losses, floatx))
            objective = losses / total
            if model.losses:  # regularisers count once per global batch, divided by samples
                objective += tf.add_n(model.losses) * tf.cast(part.count, floatx) / total
            if loss_scale:
                objective *= tf.cast(loss_scale.value, objective.dtype)
        gradients = tape.gradient(objective, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(value) for value in gradients], tf.cast(losses, tf.float64)

    return gradient


def average(replicas: CompiledReplicas, variables: Sequence[Any], buckets: Buckets, due: Any) -> None:
    """Set each worker's own variables to their means over workers if `due`. Compiled."""

    def averaged() -> Any:
        means = replicas.means([tf.identity(variable) for variable in variables], buckets)
        for variable, mean in zip(variables, means, strict=True):
            variable.assign(mean)
        return tf.constant(0)

    tf.cond(due, averaged, lambda: tf.constant(0))
