"""Metrics of numbers: sums over the whole set, divided once, so that the workers' sums add up exactly."""

from typing import Any

import keras


class Errors(keras.Metric):
    """Base class: sums of counts, errors and targets over all values of all samples.

    Targets have shape [B, ...] and outputs as many values. All samples must have the same number of values.
    """

    better = "lower"
    bounded = False

    def __init__(self, name: str | None = None) -> None:
        # float64: differences of large sums lose their digits in float32.
        super().__init__(name=name or type(self).__name__.lower(), dtype="float64")
        self.count = self._sum("count")
        self.absolute = self._sum("absolute")
        self.squared = self._sum("squared")
        self.targets = self._sum("targets")
        self.target_squares = self._sum("target_squares")

    def _sum(self, name: str) -> keras.Variable:
        return self.add_variable((), "zeros", dtype="float64", name=name)

    def update_state(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
    ) -> None:
        """Add a batch; `sample_weight` is ignored."""
        ops = keras.ops
        true = _flat(y_true)
        error = _flat(y_pred) - true
        # From a tensor: in a graph for batches of any size, the number of values is unknown.
        ones = ops.ones_like(true)
        for variable, values in (
            (self.count, ones),
            (self.absolute, ops.abs(error)),
            (self.squared, ops.square(error)),
            (self.targets, true),
            (self.target_squares, ops.square(true)),
        ):
            variable.assign_add(ops.sum(values))


def _flat(values: Any) -> Any:
    return keras.ops.cast(keras.ops.reshape(values, (-1,)), "float64")


class Mae(Errors):
    """Mean absolute error, in the targets' unit."""

    def result(self) -> Any:
        """Return Σ|error| / number of values."""
        return self.absolute / self.count


class Rmse(Errors):
    """Root of the mean squared error, in the targets' unit."""

    def result(self) -> Any:
        """Return √(Σ error² / number of values)."""
        return keras.ops.sqrt(self.squared / self.count)


class R2(Errors):
    """Coefficient of determination: 1 − Σ error² / Σ (target − mean target)²; 0 if all targets are equal."""

    better = "higher"

    def result(self) -> Any:
        """Return the coefficient: 1 is perfect, 0 as good as predicting the mean."""
        ops = keras.ops
        # From sums alone, which workers can add up.
        scatter = self.target_squares - ops.square(self.targets) / self.count
        coefficient = 1 - self.squared / scatter
        return ops.where(scatter > 0, coefficient, 0.0)
