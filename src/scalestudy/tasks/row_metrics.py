"""Keras's metrics of rows [B, units] that create their variables on first use, for targets of any form."""

import math
from typing import Any

import keras

OF_ROWS = (keras.metrics.FBetaScore, keras.metrics.R2Score)
"""Their classes; `F1Score` is a subclass of the first."""


class RowMetric(keras.Metric):
    """Calls a metric of rows with targets and outputs of two axes.

    Class indices become rows of 0 and 1, and each pixel of a mask is a row. A metric with a value for each
    class (`average=None`) counts as their mean, and has `parts`.

    Args:
        metric: The metric.
        units: Number of values in a row of the outputs.
        ignore: Label of pixels that do not count, or None.
    """

    def __init__(
        self,
        metric: keras.Metric,
        units: int,
        ignore: int | None,
    ) -> None:
        super().__init__(name=metric.name, dtype=metric.dtype)
        self.metric = metric
        self._units = units
        self._ignore = ignore
        # Workers add up variables, which must exist before the first step.
        row = keras.ops.zeros((1, units), metric.dtype)
        metric.update_state(row, row)
        metric.reset_state()

    def update_state(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
    ) -> None:
        """Add a batch; `sample_weight` is ignored."""
        ops = keras.ops
        row = (-1, self._units)
        outputs = ops.reshape(y_pred, row)
        target_values = math.prod(y_true.shape[1:])
        output_values = math.prod(y_pred.shape[1:])
        if target_values == output_values:
            targets = ops.reshape(y_true, row)
            self.metric.update_state(targets, outputs)
            return
        labels = ops.reshape(y_true, (-1,))
        indices = ops.cast(labels, "int32")
        rows = ops.one_hot(indices, self._units, dtype=self.dtype)
        if self._ignore is not None:
            # A row of zeros is of no class, in targets and outputs: it counts in nothing.
            counted = ops.expand_dims(labels != self._ignore, 1)
            outputs = outputs * ops.cast(counted, outputs.dtype)
        self.metric.update_state(rows, outputs)

    def result(self) -> Any:
        """Return the metric, or the mean over its classes."""
        # One number, by which runs can be compared.
        return keras.ops.mean(self.metric.result())

    def parts(self) -> dict[int, float]:
        """Return the value of each class; empty for a metric of one value."""
        values = keras.ops.convert_to_numpy(self.metric.result())
        if values.ndim == 0:
            return {}
        return dict(enumerate(values.tolist()))

    def reset_state(self) -> None:
        """Set all sums to 0."""
        self.metric.reset_state()


def with_rows(
    metrics: dict[str, keras.Metric],
    outputs: Any,
    ignore: int | None,
) -> dict[str, keras.Metric]:
    """Return metrics with those of rows wrapped, for the symbolic outputs of a model with a single output."""
    flat = keras.tree.flatten(outputs)
    if len(flat) != 1:
        return metrics
    shape = flat[0].shape
    if not shape[1:]:
        return metrics
    units = shape[-1]
    fitted = dict(metrics)
    for name, metric in metrics.items():
        if isinstance(metric, OF_ROWS):
            fitted[name] = RowMetric(metric, units, ignore)
    return fitted
