"""PyTorch's losses, and metrics in the way of torchmetrics, as a task takes them."""

import copy
import inspect
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import keras
import torch

from scalestudy.study.objectives import unweighted
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.labels import mean_over_rest
from scalestudy.tasks.losses import Loss
from scalestudy.tasks.module import ModuleModel, is_module
from scalestudy.tasks.task_loss import loss_of, of_data_alone
from scalestudy.util.errors import UserError


def module_loss(model: ModuleModel, given: Any, data: DataInfo, where: str) -> Loss:
    """(targets, outputs) -> losses of shape [B], of what the module gives; as `loss_of` for Keras's models.

    A loss of PyTorch's (`nn.CrossEntropyLoss()`, its class, or `torch.nn.functional.cross_entropy`) is
    called with (outputs, targets), and gives a loss for each element; a function of the task file with
    (targets, outputs); a loss by name, or of Keras's, with probabilities of channels last.

    Raises:
        UserError: As `loss_of`.
    """
    asked = of_data_alone(given)  # and may have looked at the class weights
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
    """(outputs, targets) -> a loss for each element; None of what is not PyTorch's."""
    if getattr(given, "__module__", None) == "torch.nn.functional" and not isinstance(given, type):
        return partial(given, reduction="none")
    loss = given() if isinstance(given, type) and issubclass(given, torch.nn.Module) else given
    if not is_module(loss):
        return None
    loss = copy.copy(loss).to(keras.ops.convert_to_tensor(0.0).device)
    if hasattr(loss, "reduction"):  # which a mean over the batch would not be exact with
        loss.reduction = "none"
    return loss


def _indices(targets: Any) -> Any:
    """Targets with whole numbers as PyTorch takes indices of classes."""
    return keras.tree.map_structure(
        lambda values: values if values.is_floating_point() else values.long(), targets
    )


def _fitted(targets: Any, outputs: Any) -> Any:
    """Targets as a loss of PyTorch's takes them beside these outputs: indices of classes, or numbers."""
    if not torch.is_tensor(targets) or not torch.is_tensor(outputs):
        return _indices(targets)
    if outputs.ndim == targets.ndim + 1:
        if outputs.shape[1] > 1:
            return _indices(targets)
        targets = targets.unsqueeze(1)
    return targets.to(outputs.dtype)


class SummedMetric(keras.Metric):
    """A metric in the way of torchmetrics (`update`, `compute`, `reset`) whose states are sums over samples.

    Args:
        metric: Its states (`metric_state`) begin with zeros; that they add up is tried with the task.

    Raises:
        UserError: If they are no numbers, or begin with others.
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
        """Add a batch, as update(outputs, targets); every sample counts once."""
        self.metric.reset()
        self.metric.update(y_pred, _indices(y_true))
        for state, total in self.states.items():
            total.assign(total + getattr(self.metric, state))

    def result(self) -> Any:
        """What `compute` makes of the sums."""
        self.metric.reset()
        for state, total in self.states.items():
            setattr(self.metric, state, total.value.detach().clone())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it was not updated since it was reset
            return self.metric.compute()


def with_metrics(given: Any) -> Any:
    """Metrics of a task file, those in the way of torchmetrics as Keras's; in lists and dictionaries."""
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
    """Whether a metric takes what the module gives, and not probabilities: functions, and torchmetrics'."""
    return isinstance(metric, SummedMetric) or type(metric) is keras.metrics.MeanMetricWrapper
