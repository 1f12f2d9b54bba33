"""Keras optimizers with the settings of a point."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from scalestudy.util.errors import UserError

ADAPTIVE = {"adam": keras.optimizers.Adam, "adamw": keras.optimizers.AdamW, "lamb": keras.optimizers.Lamb}


@keras.saving.register_keras_serializable(package="scalestudy")
class TableSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of each step, read from a table; after its end the last value is used.

    Args:
        table: Rates, shape [steps].
    """

    def __init__(self, table: NDArray[np.float64] | list[float]) -> None:
        self.table = np.asarray(table, np.float64)
        self._kept: Any = None

    def __call__(self, step: Any) -> Any:
        """Return the rate of `step`, a scalar of Keras's float type."""
        rates = self._kept
        if rates is None:
            rates = ops.convert_to_tensor(self.table, keras.config.floatx())
            # PyTorch would copy it at each step, and wait for the GPU; TensorFlow's tensor is of its graph.
            self._kept = rates if keras.backend.backend() == "torch" else None
        return ops.take(rates, ops.minimum(ops.cast(step, "int64"), len(self.table) - 1))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that recreate the schedule."""
        return {"table": self.table.tolist()}


def make_optimizer(
    name: str, table: NDArray[np.float64], *, kappa: float = 1.0, scaling: str = "none",
    clip_norm: float | None = None,
) -> keras.Optimizer:  # fmt: skip
    """Create the optimizer `name` with the learning rates of `table` (shape [steps]).

    For an adaptive optimizer, scaling "sqrt" also changes the betas and epsilon to 1 − κ(1 − β) and ε/√κ
    (Malladi et al. 2022), so that averages span as many samples as before. `clip_norm` limits the global
    norm of the gradients (Pascanu et al. 2013).

    Raises:
        UserError: If κ is so large that a beta would not be positive.
    """
    constant = bool(np.all(table == table[0]))
    rate = float(table[0]) if constant else TableSchedule(table)
    if name in ("sgd", "momentum", "nesterov"):
        momentum = 0.0 if name == "sgd" else 0.9
        return keras.optimizers.SGD(
            rate, momentum=momentum, nesterov=name == "nesterov", global_clipnorm=clip_norm
        )
    kind = ADAPTIVE[name]
    if scaling != "sqrt" or kappa == 1:
        return kind(rate, global_clipnorm=clip_norm)
    plain = kind(0.0)
    betas = [1 - kappa * (1 - beta) for beta in (plain.beta_1, plain.beta_2)]
    if min(betas) < 1e-6:  # rounding leaves 2e-17 at exactly ten
        raise UserError(
            'a global batch under 10 reference batches for learning_rate_scaling = "sqrt" with '
            f"{name}, whose beta_1 of {plain.beta_1} has no counterpart beyond",
            f"{kappa:g} reference batches",
            'Use "linear", fewer workers, or a larger reference_batch.',
        )
    epsilon = plain.epsilon / math.sqrt(kappa)
    return kind(rate, beta_1=betas[0], beta_2=betas[1], epsilon=epsilon, global_clipnorm=clip_norm)
