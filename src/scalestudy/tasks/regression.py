"""Metrics of numbers, summed over a whole set and divided once."""

from typing import Any

import keras


class _Errors(keras.Metric):
    """Sums over all values of all samples: how many, of the errors and of the targets.

    Targets of shape [B, ...] and outputs of as many values; each sample must have as many as the others.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, dtype="float64")
        for sums in ("count", "absolute", "squared", "targets", "target_squares"):
            setattr(self, sums, self.add_variable((), "zeros", dtype="float64", name=sums))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; a `sample_weight` is not supported, every sample counts once."""
        ops = keras.ops
        true = ops.cast(ops.reshape(y_true, (-1,)), "float64")
        error = ops.cast(ops.reshape(y_pred, (-1,)), "float64") - true
        for sums, values in (
            (self.count, ops.ones_like(true)), (self.absolute, ops.abs(error)),
            (self.squared, ops.square(error)), (self.targets, true), (self.target_squares, ops.square(true)),
        ):  # fmt: skip
            sums.assign_add(ops.sum(values))


class Mae(_Errors):
    """Mean absolute error, in the targets' unit."""

    better, bounded = "lower", False

    def __init__(self, name: str = "mae") -> None:
        super().__init__(name)

    def result(self) -> Any:
        """Σ|error| / values."""
        return self.absolute / self.count


class Rmse(_Errors):
    """Root of the mean squared error, in the targets' unit."""

    better, bounded = "lower", False

    def __init__(self, name: str = "rmse") -> None:
        super().__init__(name)

    def result(self) -> Any:
        """√(Σ error² / values)."""
        return keras.ops.sqrt(self.squared / self.count)


class R2(_Errors):
    """Coefficient of determination: 1 − Σ error² / Σ (target − mean target)²; 0 for targets all equal."""

    better, bounded = "higher", False

    def __init__(self, name: str = "r2") -> None:
        super().__init__(name)

    def result(self) -> Any:
        """1 is perfect, 0 as good as the mean of the targets."""
        scatter = self.target_squares - keras.ops.square(self.targets) / self.count
        return keras.ops.where(scatter > 0, 1 - self.squared / scatter, 0.0)


BY_NAME = {"mae": Mae, "rmse": Rmse, "r2": R2}
"""What they are called in `metrics` of a task file."""
