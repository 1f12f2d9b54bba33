"""Keras optimizers with the settings of a point, TensorFlow's fused kernels for them, and the loss scale."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from numpy.typing import NDArray

from scalestudy.config.point import Averages, Point, scale_averages
from scalestudy.engines.keras.private import moments_of, replace_update

ADAPTIVE = {
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "lamb": keras.optimizers.Lamb,
}
GROW_AFTER = 2000
START = 2.0**15


@keras.saving.register_keras_serializable(package="scalestudy")
class TableSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of each step, read from a table; after its end the last value is used.

    Args:
        table: Rates, shape [steps].
    """

    def __init__(self, table: NDArray[np.float64] | list[float]) -> None:
        self.table = np.asarray(table, np.float64)

    def __call__(self, step: Any) -> Any:
        """Return the rate of `step`, a scalar of Keras's float type."""
        rates = ops.convert_to_tensor(self.table, keras.config.floatx())
        return ops.take(
            rates,
            ops.minimum(ops.cast(step, "int64"), len(self.table) - 1),
        )

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that recreate the schedule."""
        return {"table": self.table.tolist()}


def make_keras_optimizer(
    name: str,
    table: NDArray[np.float64],
    *,
    kappa: float = 1.0,
    scaling: str = "none",
    clip_norm: float | None = None,
) -> keras.Optimizer:
    """Create the optimizer `name` with the learning rates of `table` (shape [steps]).

    For an adaptive optimizer, scaling "sqrt" also changes the betas and epsilon; see `scale_averages`.
    `clip_norm` limits the global norm of the gradients (Pascanu et al. 2013).
    """
    # Callbacks can set a constant rate, but no schedule's.
    constant = bool(np.all(table == table[0]))
    rate = float(table[0]) if constant else TableSchedule(table)
    if name in ("sgd", "momentum", "nesterov"):
        momentum = 0.0 if name == "sgd" else 0.9
        return keras.optimizers.SGD(
            rate,
            momentum=momentum,
            nesterov=name == "nesterov",
            global_clipnorm=clip_norm,
        )
    kind = ADAPTIVE[name]
    if scaling != "sqrt" or kappa == 1:
        return kind(rate, global_clipnorm=clip_norm)
    # Made only to read Keras's defaults.
    plain = kind(0.0)
    beta_1, beta_2, epsilon = scale_averages(
        Averages(plain.beta_1, plain.beta_2, plain.epsilon),
        kappa,
    )
    return kind(
        rate,
        beta_1=beta_1,
        beta_2=beta_2,
        epsilon=epsilon,
        global_clipnorm=clip_norm,
    )


def build_optimizer(
    point: Point,
    prepare: Callable[[Any], None],
    rates: NDArray[np.float64],
    first: int,
    variables: list[Any],
) -> keras.Optimizer:
    """Return Keras's optimizer for a phase with these rates; call `prepare` with it before it is built."""
    train = point.train
    optimizer = make_keras_optimizer(
        train.optimizer,
        rates,
        kappa=point.batch_ratio,
        scaling=train.learning_rate_scaling,
        clip_norm=train.clip_norm,
    )
    prepare(optimizer)
    # Built before the first step: a checkpoint restores its variables before that.
    optimizer.build(variables)
    return optimizer


def fuse(optimizer: keras.Optimizer) -> None:
    """Make an optimizer of `make_keras_optimizer` use fused kernels; results equal Keras's up to rounding.

    In a replica it updates the copies of the variables on the replica's device. TensorFlow has no kernel for
    LAMB, which stays as it is.
    """
    # Exact types: LAMB and a user's subclass may change what a step does.
    kind = type(optimizer)
    if kind is keras.optimizers.SGD:
        replace_update(optimizer, partial(_update, optimizer, _sgd))
    elif kind in (keras.optimizers.Adam, keras.optimizers.AdamW):
        replace_update(optimizer, partial(_update, optimizer, _adam))


def _update(
    optimizer: Any,
    update: Callable[..., None],
    gradients: Sequence[Any],
    variables: Sequence[Any],
    rate: Any,
) -> None:
    """Apply weight decay, then the update, in Keras's order."""
    # The kernels take every number in the type of the weights.
    rate = tf.cast(rate, gradients[0].dtype)
    if optimizer.weight_decay is not None:
        share = rate * tf.cast(optimizer.weight_decay, rate.dtype)
        for variable in variables:
            decay = share * tf.convert_to_tensor(variable.value)
            tf.raw_ops.AssignSubVariableOp(resource=variable.value.handle, value=decay)
    update(optimizer, gradients, variables, rate)


def _sgd(
    optimizer: Any,
    gradients: Sequence[Any],
    variables: Sequence[Any],
    rate: Any,
) -> None:
    momentum = tf.cast(optimizer.momentum, rate.dtype)
    for gradient, variable in zip(gradients, variables, strict=True):
        handle = variable.value.handle
        if optimizer.momentum:
            (velocity,) = moments_of(optimizer, variable)
            # Not `ResourceApplyMomentum`, whose velocity leaves out the rate that Keras's includes.
            tf.raw_ops.ResourceApplyKerasMomentum(
                var=handle,
                accum=velocity.value.handle,
                lr=rate,
                grad=gradient,
                momentum=momentum,
                use_nesterov=optimizer.nesterov,
            )
        else:
            tf.raw_ops.ResourceApplyGradientDescent(
                var=handle,
                alpha=rate,
                delta=gradient,
            )


def _adam(
    optimizer: Any,
    gradients: Sequence[Any],
    variables: Sequence[Any],
    rate: Any,
) -> None:
    step = tf.cast(optimizer.iterations.value + 1, rate.dtype)
    # The kernel takes the powers of both betas, by which Adam corrects the bias of its first steps.
    powers = [
        tf.pow(tf.cast(beta, rate.dtype), step)
        for beta in (optimizer.beta_1, optimizer.beta_2)
    ]
    constants = [optimizer.beta_1, optimizer.beta_2, optimizer.epsilon]
    beta1, beta2, epsilon = (tf.constant(value, rate.dtype) for value in constants)
    for gradient, variable in zip(gradients, variables, strict=True):
        mean, square = moments_of(optimizer, variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.value.handle,
            m=mean.value.handle,
            v=square.value.handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            grad=gradient,
        )


class LossScale:
    """Dynamic loss scale, so that float16 gradients neither underflow nor overflow.

    The scale is halved if a gradient is not finite (the step is skipped), and doubled after 2,000 good steps
    (Micikevicius et al. 2018, arXiv:1710.03740). A value that is not finite on one worker is not finite in
    the sum either, so all workers decide the same without further exchange.
    """

    def __init__(self) -> None:
        self.variables = [
            keras.Variable(START, trainable=False, dtype="float32"),
            keras.Variable(0, trainable=False, dtype="int64"),
        ]
        self.value, self.good = (variable.value for variable in self.variables)

    def overflow(self, gradients: Sequence[Any]) -> Any:
        """Return whether any of the summed gradients is not finite."""
        finite = [tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients]
        return tf.logical_not(tf.reduce_all(finite))

    def guard(self, overflow: Any, update: Callable[[], None]) -> None:
        """Call `update` unless `overflow` is true; then adjust the scale."""

        def good() -> Any:
            update()
            full = self.good + 1 >= GROW_AFTER
            self.value.assign(tf.where(full, self.value * 2, self.value))
            self.good.assign(tf.where(full, tf.zeros([], tf.int64), self.good + 1))
            return tf.constant(0)

        def bad() -> Any:
            # A scale below 1 would make small gradients underflow, which it is to prevent.
            self.value.assign(tf.maximum(self.value / 2, 1.0))
            self.good.assign(0)
            return tf.constant(0)

        # In the graph, so that the host need not wait for the gradients to decide it.
        tf.cond(overflow, bad, good)
