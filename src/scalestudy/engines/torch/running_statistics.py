"""Running statistics of layers that normalise each slice by itself, weighted by its rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from scalestudy.data.samples import Slice
from scalestudy.engines.torch.layers import TorchBatchNorm, share_of_batch


class LayerStatistics(NamedTuple):
    """The running statistics of a layer.

    Attributes:
        mean, variance: Tensors of shape [C].
        count: Batches so far, a tensor; None if the layer does not count them.
        momentum: Share of a batch's statistics; None for 1 / count.
    """

    mean: Any
    variance: Any
    count: Any
    momentum: float | None


def _statistics_of(layer: Any) -> LayerStatistics:
    if isinstance(layer, TorchBatchNorm):
        return LayerStatistics(
            layer.moving_mean.value,
            layer.moving_variance.value,
            None,
            1 - layer.momentum,
        )
    return LayerStatistics(
        layer.running_mean,
        layer.running_var,
        layer.num_batches_tracked,
        layer.momentum,
    )


class RunningStatistics:
    """Running statistics of layers that normalise each slice by itself, weighted by its rows.

    PyTorch moves them by the momentum m in each forward pass, whatever the number of rows. Here a worker
    adds its part in proportion to its rows, r ← (1 − m) r + m · share · (statistics of its slice), where
    shares have the mean 1. The mean over workers then depends on all samples equally.

    Args:
        layers: The layers.
        processes: Number of processes.
    """

    def __init__(self, layers: Sequence[Any], processes: int) -> None:
        self._processes = processes
        self._layers = [_statistics_of(layer) for layer in layers]
        self._counts: list[Any] = []
        self._values: list[Any] = []
        for each in self._layers:
            self._values += [each.mean, each.variance]
            if each.count is not None:
                self._counts.append(each.count)
        self._rest = 0.0
        self._active = False
        self._before: list[Any] = []
        self._counted: list[Any] = []
        self._sums: list[Any] = []

    @torch.no_grad()
    def begin(self, part: Slice, slices: int) -> None:
        """Begin a step that computes the rows `part` of this process in so many slices."""
        self._rest = 1 - self._processes * part.count / part.total
        # A whole slice of average size needs nothing of this: then PyTorch's own update is the exact one.
        self._active = bool(self._values) and (slices > 1 or self._rest != 0)
        if self._active:
            self._before = [value.clone() for value in self._values]
            self._counted = [count.clone() for count in self._counts]
            self._sums = [torch.zeros_like(value) for value in self._values]

    @torch.no_grad()
    def add(self, part: Slice) -> None:
        """Add what the forward pass of a slice has made of the statistics, and take it back."""
        if not self._active:
            return
        if part.count:
            share = self._processes * part.count / part.total
            torch._foreach_add_(self._sums, self._values, alpha=share)
        # One kernel for all layers; a loop would start hundreds of small ones.
        torch._foreach_copy_(self._values, self._before)
        if self._counts:
            torch._foreach_copy_(self._counts, self._counted)

    @torch.no_grad()
    def end(self) -> None:
        """Set the statistics at the end of the step."""
        if not self._active:
            return
        if self._counts:
            torch._foreach_add_(self._counts, 1)
        kept = []
        for each in self._layers:
            old = 1 - share_of_batch(each.momentum, each.count)
            kept += [old, old]  # of the mean, and of the variance
        torch._foreach_mul_(self._before, kept)
        torch._foreach_add_(self._sums, self._before, alpha=self._rest)
        torch._foreach_copy_(self._values, self._sums)
