"""Updates of Keras optimizers in PyTorch's kernels: fused Adam on CPUs, SGD without a wait on GPUs."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import torch
from torch.optim.adam import adam

from scalestudy.engines.keras.private import moments_of, replace_update


def fuse(optimizer: keras.Optimizer) -> None:
    """Replace the update of Adam or AdamW by the fused kernel (equal up to rounding); ignore others."""
    if isinstance(optimizer, keras.optimizers.Adam):
        replace_update(optimizer, partial(_updated, optimizer))


@torch.no_grad()
def _updated(optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any], rate: Any) -> None:
    """Decay and update: w ← (1 − rate · decay) w − rate · c · m / (√v + ε), c = √(1 − β₂ᵗ) / (1 − β₁ᵗ).

    PyTorch would add ε after it has divided v by 1 − β₂ᵗ. For an infinite t its kernel divides by 1, so that
    ε is where Keras has it.
    """
    values = [variable.value for variable in variables]
    step = optimizer.iterations.value.to(values[0].dtype) + 1
    first, second = (1 - torch.full_like(step, beta) ** step for beta in (optimizer.beta_1, optimizer.beta_2))
    correction = float(torch.sqrt(second) / first)
    moments = [[moment.value for moment in moments_of(optimizer, variable)] for variable in variables]
    adam(
        values, [_laid_out_as(*pair) for pair in zip(values, gradients, strict=True)],
        [mean for mean, _ in moments], [square for _, square in moments], [],
        [torch.tensor(math.inf)] * len(values), fused=True, decoupled_weight_decay=True, amsgrad=False,
        maximize=False, beta1=optimizer.beta_1, beta2=optimizer.beta_2, eps=optimizer.epsilon,
        lr=float(rate) * correction, weight_decay=(optimizer.weight_decay or 0.0) / correction,
    )  # fmt: skip


def _laid_out_as(value: Any, gradient: Any) -> Any:
    """Return the gradient in the memory layout of its weights; the kernel does not check strides."""
    return gradient if gradient.stride() == value.stride() else torch.empty_like(value).copy_(gradient)


def keep_rate_on_device(optimizer: keras.Optimizer) -> None:
    """Replace the update of an SGD of `make_optimizer`, which has no weight decay; ignore others.

    Keras passes the learning rate to PyTorch as a Python number, which waits for all work queued on the GPU.
    This update reads it on the device.
    """
    if isinstance(optimizer, keras.optimizers.SGD):
        replace_update(optimizer, partial(_sgd, optimizer))


def _sgd(optimizer: Any, gradients: list[Any], variables: list[keras.Variable], rate: Any) -> None:
    values = [variable.value for variable in variables]
    steps = torch._foreach_mul(gradients, keras.ops.convert_to_tensor(rate).to(gradients[0].dtype))
    if optimizer.momentum:
        moments = [moments_of(optimizer, variable)[0].value for variable in variables]
        torch._foreach_mul_(moments, optimizer.momentum)
        torch._foreach_sub_(moments, steps)
    if optimizer.nesterov or not optimizer.momentum:
        torch._foreach_sub_(values, steps)
    if optimizer.momentum:
        torch._foreach_add_(values, moments, alpha=optimizer.momentum if optimizer.nesterov else 1)
