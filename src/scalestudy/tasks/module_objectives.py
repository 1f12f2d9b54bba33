"""Adapt PyTorch losses and metrics with the interface of torchmetrics to tasks."""

import copy
import inspect
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import keras
import torch

from scalestudy.config.objectives import unweighted
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.labels import mean_over_rest
from scalestudy.tasks.losses import Loss, loss_of, of_data_alone
from scalestudy.tasks.module import ModuleModel, is_module
from scalestudy.util.errors import UserError


def module_loss(model: ModuleModel, given: Any, data: DataInfo, where: str) -> Loss:
    """Return a loss (targets, outputs) -> [B] of a module's outputs; the counterpart of `loss_of` for Keras.

    A PyTorch loss (`nn.CrossEntropyLoss()`, its class, or `torch.nn.functional.cross_entropy`) is called
    with (outputs, targets) and returns a loss for each element. A function of the task file is called with
    (targets, outputs). A loss by name, or of Keras, receives probabilities with channels last.

    Raises:
        UserError: As in `loss_of`.
    """
    asked = of_data_alone(given)  # such a function may use the class weights itself
    given = given(data) if asked else given
    pytorch = _of_pytorch(given)
    if pytorch is None and not inspect.isfunction(given):
        named = loss_of(given, data, where)
        return lambda targets, outputs: named(targets, model.probabilities(outputs))
    if data.class_weights is not None and not asked:
        raise unweighted(getattr(given, "__name__", type(given).__name__))
    if pytorch is None:
        return lambda targets, outputs: mean_over_rest(given(_indices(targets), outputs))
    return lambda targets, outputs: mean_over_rest(pytorch(outputs, _fitted(targets, outputs)))


def _of_pytorch(given: Any) -> Any:
    """Return (outputs, targets) -> a loss for each element; None if `given` is not a PyTorch loss."""
    if getattr(given, "__module__", None) == "torch.nn.functional" and not isinstance(given, type):
        return partial(given, reduction="none")
    loss = given() if isinstance(given, type) and issubclass(given, torch.nn.Module) else given
    if not is_module(loss):
        return None
    loss = copy.copy(loss).to(keras.ops.convert_to_tensor(0.0).device)
    if hasattr(loss, "reduction"):  # the mean of a worker's slice would not be exact
        loss.reduction = "none"
    return loss


def _indices(targets: Any) -> Any:
    """Convert integer targets to int64, as PyTorch requires for class indices."""
    return keras.tree.map_structure(
        lambda values: values if values.is_floating_point() else values.long(), targets
    )


def _fitted(targets: Any, outputs: Any) -> Any:
    """Convert targets for a PyTorch loss of these outputs: to class indices, or to the outputs' type."""
    if not torch.is_tensor(targets) or not torch.is_tensor(outputs):
        return _indices(targets)
    if outputs.ndim == targets.ndim + 1:
        if outputs.shape[1] > 1:
            return _indices(targets)
        targets = targets.unsqueeze(1)
    return targets.to(outputs.dtype)


class SummedMetric(keras.Metric):
    """A metric with the torchmetrics interface (`update`, `compute`, `reset`) whose states are sums.

    Args:
        metric: Its states (`metric_state`) must start at zero. `tasks.trial` checks that they add up.

    Raises:
        UserError: If a state is not a tensor or does not start at zero.
    """

    def __init__(self, metric: Any, name: str | None = None) -> None:
        super().__init__(name=name or type(metric).__name__.lower(), dtype="float64")
        self.metric = metric.to(keras.ops.convert_to_tensor(0.0).device) if is_module(metric) else metric
        better: Any = getattr(metric, "higher_is_better", None)
        self.better = {True: "higher", False: "lower"}.get(better)
        self.bounded = None
        self.states: dict[str, Any] = {}
        metric.reset()
        for state, value in metric.metric_state.items():
            if not torch.is_tensor(value) or bool(value.any()):
                raise UserError(
                    'a metric whose states are sums (dist_reduce_fx="sum") that start at 0',
                    f"{state} of {type(metric).__name__}, which is not",
                    "Keep numerators and denominators, which are summed over workers.",
                )
            dtype = "float64" if value.is_floating_point() else "int64"
            self.states[state] = self.add_variable(tuple(value.shape), "zeros", dtype=dtype, name=state)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch by `update(outputs, targets)`; `sample_weight` is ignored."""
        self.metric.reset()
        self.metric.update(y_pred, _indices(y_true))
        for state, total in self.states.items():
            total.assign(total + getattr(self.metric, state))

    def result(self) -> Any:
        """Return `compute()` for the sums."""
        self.metric.reset()
        for state, total in self.states.items():
            setattr(self.metric, state, total.value.detach().clone())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compute() without update() after reset()
            return self.metric.compute()


def with_metrics(given: Any) -> Any:
    """Wrap metrics with the torchmetrics interface as Keras metrics, also in lists and dictionaries."""
    if isinstance(given, Mapping):
        return {name: with_metrics(metric) for name, metric in given.items()}
    if isinstance(given, list | tuple):
        return [with_metrics(metric) for metric in given]
    if isinstance(given, keras.Metric) or not all(
        hasattr(given, name) for name in ("update", "compute", "metric_state")
    ):
        return given
    return SummedMetric(given() if isinstance(given, type) else given)


def sees_raw(metric: keras.Metric) -> bool:
    """Whether a metric takes the module's outputs, not probabilities: functions and torchmetrics."""
    return isinstance(metric, SummedMetric) or type(metric) is keras.metrics.MeanMetricWrapper
