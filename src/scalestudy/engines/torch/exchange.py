"""Gradients in one flat tensor per bucket, summed over workers during back-propagation."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from scalestudy.engines.buckets import Buckets


class Gradients:
    """Gradients of parameters, which back-propagation accumulates in flat tensors.

    The sum of a bucket starts as soon as its gradients are complete and the sums of all earlier buckets have
    started. Thus every rank starts the sums in the same order in every step, and they repeat bit for bit,
    also after a resume. (PyTorch's DDP reorders its buckets after the first step; Li et al. 2020,
    arXiv:2006.15704.)

    Attributes:
        values: Gradients in the order of the parameters, as views of `flat`.
        flat: One tensor per bucket with all its gradients.

    Args:
        parameters: Parameters in the order of the model's variables.
        buckets: Indices of the parameters of each bucket, in the order of the exchange.
        start_sum: Starts to sum a tensor over all processes and returns a handle to wait for; None if
            gradients are not summed.
    """

    def __init__(
        self, parameters: Sequence[Any], buckets: Buckets, start_sum: Callable[[Any], Any] | None
    ) -> None:
        self._parameters, self._start_sum = list(parameters), start_sum
        self.flat: list[Any] = []
        self.values: list[Any] = [None] * len(self._parameters)
        self._bucket = {index: number for number, bucket in enumerate(buckets) for index in bucket}
        self._sizes = [len(bucket) for bucket in buckets]
        for bucket in buckets:
            members = [self._parameters[index] for index in bucket]
            sizes = [member.numel() for member in members]
            self.flat.append(torch.zeros(sum(sizes), dtype=members[0].dtype, device=members[0].device))
            for index, part in zip(bucket, self.flat[-1].split(sizes), strict=True):
                self.values[index] = _laid_out(part, self._parameters[index])
        self._missing: list[int] = []
        self._started: list[Any] = []
        self._last = False
        for index, parameter in enumerate(self._parameters):
            parameter.register_post_accumulate_grad_hook(self._hook(index))

    def begin(self) -> None:
        """Set all gradients to zero, before the first backward pass of a step."""
        for flat in self.flat:
            flat.zero_()
        for parameter, value in zip(self._parameters, self.values, strict=True):
            parameter.grad = value
        self._missing, self._started = list(self._sizes), []

    def backward(self, objective: Any, *, last: bool) -> None:
        """Add the gradients of `objective`; in the `last` pass of a step, start the sums of full buckets."""
        self._last = last and self._start_sum is not None
        objective.backward()
        self._last = False

    def finish(self) -> list[Any]:
        """Start the remaining sums, wait for all of them, and return `values`."""
        for parameter in self._parameters:
            parameter.grad = None
        if self._start_sum is not None:
            while len(self._started) < len(self.flat):
                self._start()
            for work in self._started:
                work.wait()
        return self.values

    def finite(self) -> Any:
        """Return whether all summed gradients are finite, as a tensor on the device."""
        return torch.stack([torch.isfinite(flat).all() for flat in self.flat]).all()

    def average_parameters(self, start_sum: Callable[[Any], Any], size: int) -> None:
        """Set the parameters to their means over `size` processes. This overwrites the gradients."""
        for parameter, value in zip(self._parameters, self.values, strict=True):
            value.copy_(parameter)
        started = [start_sum(flat) for flat in self.flat]
        for flat, work in zip(self.flat, started, strict=True):
            work.wait()
            flat.div_(size)
        for parameter, value in zip(self._parameters, self.values, strict=True):
            parameter.copy_(value)

    def _hook(self, index: int) -> Callable[[Any], None]:
        bucket = self._bucket[index]

        def arrived(parameter: Any) -> None:
            if not self._last:
                return
            self._missing[bucket] -= 1
            while len(self._started) < len(self.flat) and not self._missing[len(self._started)]:
                self._start()

        return arrived

    def _start(self) -> None:
        assert self._start_sum is not None
        self._started.append(self._start_sum(self.flat[len(self._started)]))


def _laid_out(part: Any, parameter: Any) -> Any:
    """Return a flat tensor as a view with the parameter's shape, in channels_last if the parameter is."""
    if parameter.ndim == 4 and parameter.is_contiguous(memory_format=torch.channels_last):
        return part.as_strided(parameter.shape, parameter.stride())
    return part.view_as(parameter)
