"""The compiled training step: exact gradients of a global batch, for any division into slices."""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import keras
import tensorflow as tf

from scalestudy.config.point import Point
from scalestudy.data.columns import Described, leaves, map_columns
from scalestudy.data.loading.slices import Slice
from scalestudy.engines.buckets import Buckets
from scalestudy.engines.context import Working, working
from scalestudy.engines.keras.layers import kept
from scalestudy.engines.keras.phases import Phase
from scalestudy.engines.local_steps import LocalSteps
from scalestudy.engines.tensorflow.gradients import Gradient, Gradients
from scalestudy.engines.tensorflow.loss_scale import LossScale
from scalestudy.engines.tensorflow.parts import in_parts
from scalestudy.engines.tensorflow.staging import Compiled, gpu, in_floatx, scaled_inputs
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas
from scalestudy.tasks.base import Task

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
        step = part.step + tf.cast(index, tf.int64)
        inputs = map_columns(itemgetter(index), part.inputs)
        targets = map_columns(itemgetter(index), part.targets)
    return part._replace(inputs=inputs, targets=targets, step=step, first=tf.constant(True))


def slices_of(call: Sequence[Slice], index: Any, replicas: CompiledReplicas, phase: Phase) -> list[Slice]:
    """Return the slices of step `index` of a call, with their rows.

    If updates can overtake each other, on remote workers, set the optimizer's step count to this step.
    """
    parts = [step_of(part, index, gpu(device)) for device, part in enumerate(call)]
    if replicas.remote:
        phase.optimizer.iterations.assign(parts[0].step - phase.first)
    return [replicas.read(part, training=True) for part in parts]


def make_train_call(
    task: Task,
    replicas: CompiledReplicas,
    phase: Phase,
    point: Point,
    buckets: Buckets,
    *,
    scale: float | None,
    columns: tuple[Described, Described] | None,
    synchronised: bool,
    loss_scale: LossScale | None,
    local_steps: LocalSteps | None,
) -> Compiled:
    """Compile a function: slices of a call -> sum of losses in this process; it updates the weights.

    A worker's gradient is that of (sum of its slice's losses) / (samples of the *global* batch). Thus the sum
    over workers is the gradient of the global mean, for slices of any size.

    Args:
        task: Model and loss.
        replicas: Sums gradients over the workers.
        phase: Its optimizer must not sum gradients itself.
        point: How the model is trained.
        buckets: Buckets in which gradients are summed over workers.
        scale: Scales stored inputs to [0, 1]; None for samples that a task reads itself.
        columns: As in `Compiled`.
        synchronised: Whether the model's batch normalisation spans the workers.
        loss_scale: For float16.
        local_steps: When workers average weights instead of summing gradients.
    """
    train, trained = point.train, phase.variables
    variables = [variable.value for variable in trained]
    gradient = gradient_of(
        task,
        variables,
        replicas.size,
        replicas.sync_sum if synchronised else None,
        scale=scale,
        frozen=phase.frozen,
        loss_scale=loss_scale,
    )

    def update(gradients: Gradients) -> None:
        if wire:
            gradients = [tf.cast(value, v.dtype) for value, v in zip(gradients, variables, strict=True)]
        if loss_scale:
            gradients = [value / tf.cast(loss_scale.value, value.dtype) for value in gradients]
        if task.gradients is not None:
            gradients = task.gradients(gradients, trained)
        phase.optimizer.apply(gradients, trained)

    wire = WIRE[point.launch.compression] if replicas.workers > 1 else None
    compute = tf.function(gradient, jit_compile=True, autograph=False) if train.xla else gradient
    if train.accumulate > 1:
        compute = in_parts(compute, train.accumulate, variables)
    if wire:
        compute = rounded(compute, wire)

    def one(call: list[Slice], index: Any) -> Any:
        slices = slices_of(call, index, replicas, phase)
        if local_steps:
            gradients, losses = compute(slices[0])
            update([value * replicas.workers for value in gradients])
            average(replicas, variables, buckets, local_steps.due(slices[0].step))
            return losses
        return replicas.step(compute, update, slices, loss_scale, buckets=buckets, together=synchronised)

    def train_call(call: list[Slice]) -> Any:
        if leaves(call[0].inputs)[0].shape[0] == 1:
            return one(call, 0)
        _, losses = tf.while_loop(
            lambda index, _: index < call[0].steps,
            lambda index, losses: (index + 1, losses + one(call, index)),
            (tf.constant(0), tf.constant(0.0, tf.float64)),
            parallel_iterations=1,
        )
        return losses

    return Compiled(train_call, fixed=train.xla, columns=columns, call=replicas.call)


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
