"""Metrics for numbers: sums over the whole set, divided once."""

from typing import Any

import keras


class Errors(keras.Metric):
    """Base class: sums of counts, errors and targets over all values of all samples.

    Targets have shape [B, ...] and outputs as many values. All samples must have the same number of values.
    """

    better, bounded = "lower", False

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name=name or type(self).__name__.lower(), dtype="float64")
        for sums in ("count", "absolute", "squared", "targets", "target_squares"):
            setattr(self, sums, self.add_variable((), "zeros", dtype="float64", name=sums))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; `sample_weight` is ignored."""
        ops = keras.ops
        true = ops.cast(ops.reshape(y_true, (-1,)), "float64")
        error = ops.cast(ops.reshape(y_pred, (-1,)), "float64") - true
        for sums, values in (
            (self.count, ops.ones_like(true)), (self.absolute, ops.abs(error)),
            (self.squared, ops.square(error)), (self.targets, true), (self.target_squares, ops.square(true)),
        ):  # fmt: skip
            sums.assign_add(ops.sum(values))


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
        scatter = self.target_squares - keras.ops.square(self.targets) / self.count
        return keras.ops.where(scatter > 0, 1 - self.squared / scatter, 0.0)
