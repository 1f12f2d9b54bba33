"""What a module keeps besides its weights, for any division of a batch into slices."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from scalestudy.data.samples import Slice


class RunningStatistics:
    """Running statistics of layers that normalise each slice by itself, weighted by its rows.

    `torch.nn` moves them by the momentum m in each forward pass, whatever the number of rows. Here a worker
    adds its part in proportion to its rows, r ← (1 − m) r + m · share · (statistics of its slice), where
    shares have the mean 1. The mean over workers then depends on all samples equally.

    Args:
        layers: The layers.
        processes: Number of processes.
    """

    def __init__(self, layers: Sequence[nn.modules.batchnorm._BatchNorm], processes: int) -> None:
        self._processes = processes
        self._counts: list[Any] = [layer.num_batches_tracked for layer in layers]
        self._values: list[Any] = [
            value for layer in layers for value in (layer.running_mean, layer.running_var)
        ]
        self._momenta = [layer.momentum for layer in layers for _ in range(2)]

    @torch.no_grad()
    def begin(self, part: Slice, slices: int) -> None:
        """Begin a step that computes the rows `part` of this process in so many slices."""
        self._rest = 1 - self._processes * part.count / part.total
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
        torch._foreach_copy_(self._values, self._before)
        torch._foreach_copy_(self._counts, self._counted)

    @torch.no_grad()
    def end(self) -> None:
        """Set the statistics at the end of the step."""
        if not self._active:
            return
        torch._foreach_add_(self._counts, 1)
        kept = [
            1 - (1 / float(count) if momentum is None else momentum)
            for momentum, count in zip(
                self._momenta, (c for c in self._counts for _ in range(2)), strict=True
            )
        ]
        torch._foreach_mul_(self._before, kept)
        torch._foreach_add_(self._sums, self._before, alpha=self._rest)
        torch._foreach_copy_(self._values, self._sums)


class SharedBuffers:
    """Variables that are neither trained nor averaged: all workers have those of the first.

    For workers in processes of their own, DistributedDataParallel broadcasts them before each step. This does
    the same for workers that a process computes one after another.
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        self.variables = variables

    @torch.no_grad()
    def begin(self) -> None:
        """Begin a step."""
        self._before = [variable.value.clone() for variable in self.variables]
        self._first: list[Any] | None = None

    @torch.no_grad()
    def next_worker(self) -> None:
        """End the turn of a worker, and let the next one begin where the first began."""
        if self._first is None:
            self._first = [variable.value.clone() for variable in self.variables]
        for variable, value in zip(self.variables, self._before, strict=True):
            variable.value.copy_(value)

    @torch.no_grad()
    def end(self) -> None:
        """Keep the values of the first worker."""
        assert self._first is not None
        for variable, value in zip(self.variables, self._first, strict=True):
            variable.value.copy_(value)
