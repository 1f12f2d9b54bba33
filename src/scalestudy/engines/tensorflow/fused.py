"""An optimizer's update by one kernel a variable, as on GPUs: Keras's own arithmetic is some thirty each."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from scalestudy.engines.keras.private import moments_of, replace_update


def fuse(optimizer: keras.Optimizer) -> None:
    """Let SGD, Adam and AdamW update by TensorFlow's kernels, to rounding as Keras does; others stay."""
    update: Callable[..., None]
    if type(optimizer) is keras.optimizers.SGD:
        update = partial(_sgd, optimizer)
    elif isinstance(optimizer, keras.optimizers.Adam) and not optimizer.amsgrad:
        update = partial(_adam, optimizer)
    else:
        return
    replace_update(optimizer, update)


def _sgd(optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any], rate: Any) -> None:
    for gradient, variable in zip(gradients, variables, strict=True):
        handle, dtype = variable.value.handle, gradient.dtype
        if optimizer.momentum:
            (velocity,) = moments_of(optimizer, variable)
            tf.raw_ops.ResourceApplyKerasMomentum(
                var=handle, accum=velocity.value.handle, lr=tf.cast(rate, dtype), grad=gradient,
                momentum=tf.constant(optimizer.momentum, dtype), use_nesterov=optimizer.nesterov,
            )  # fmt: skip
        else:
            tf.raw_ops.ResourceApplyGradientDescent(var=handle, alpha=tf.cast(rate, dtype), delta=gradient)


def _adam(optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any], rate: Any) -> None:
    dtype = gradients[0].dtype
    step = tf.cast(optimizer.iterations.value + 1, dtype)
    betas = [tf.constant(beta, dtype) for beta in (optimizer.beta_1, optimizer.beta_2)]
    first_power, second_power = (tf.pow(beta, step) for beta in betas)  # the step's scalars, once
    for gradient, variable in zip(gradients, variables, strict=True):
        mean, square = moments_of(optimizer, variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.value.handle, m=mean.value.handle, v=square.value.handle, beta1_power=first_power,
            beta2_power=second_power, lr=tf.cast(rate, dtype), beta1=betas[0], beta2=betas[1],
            epsilon=tf.constant(optimizer.epsilon, dtype), grad=gradient,
        )  # fmt: skip
