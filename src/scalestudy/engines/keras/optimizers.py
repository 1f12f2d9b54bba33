"""Keras optimizers with the settings of a point."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from scalestudy.config.point import Averages, Point, scaled_averages

ADAPTIVE = {"adam": keras.optimizers.Adam, "adamw": keras.optimizers.AdamW, "lamb": keras.optimizers.Lamb}


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
        return ops.take(rates, ops.minimum(ops.cast(step, "int64"), len(self.table) - 1))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that recreate the schedule."""
        return {"table": self.table.tolist()}


def make_optimizer(
    name: str,
    table: NDArray[np.float64],
    *,
    kappa: float = 1.0,
    scaling: str = "none",
    clip_norm: float | None = None,
) -> keras.Optimizer:
    """Create the optimizer `name` with the learning rates of `table` (shape [steps]).

    For an adaptive optimizer, scaling "sqrt" also changes the betas and epsilon; see `scaled_averages`.
    `clip_norm` limits the global norm of the gradients (Pascanu et al. 2013).
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
    beta_1, beta_2, epsilon = scaled_averages(Averages(plain.beta_1, plain.beta_2, plain.epsilon), kappa)
    return kind(rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, global_clipnorm=clip_norm)


def optimizer_of(
    point: Point, prepare: Callable[[Any], None], rates: NDArray[np.float64], first: int, variables: list[Any]
) -> keras.Optimizer:
    """Return Keras's optimizer for a phase with these rates; call `prepare` with it before it is built."""
    train = point.train
    optimizer = make_optimizer(
        train.optimizer,
        rates,
        kappa=point.batch_ratio,
        scaling=train.learning_rate_scaling,
        clip_norm=train.clip_norm,
    )
    prepare(optimizer)
    optimizer.build(variables)
    return optimizer
