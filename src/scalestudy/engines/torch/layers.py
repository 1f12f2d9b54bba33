"""Keras layers and PyTorch modules whose statistics are the same for any division of a batch into slices."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras
import torch
import torch.distributed as dist
from keras import layers
from torch import nn
from torch.nn.modules import _functions

from scalestudy.data.samples import Slice
from scalestudy.engines.keras.adapt import adapt
from scalestudy.engines.keras.layer_context import Working, collect, current
from scalestudy.engines.keras.private import all_layers
from scalestudy.engines.torch.convolutions import keep_layout
from scalestudy.tasks.module import ModuleModel
from scalestudy.util.errors import UserError

WIDE = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
"""Types in which statistics are computed; for other types, the type itself."""
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class TorchBatchNorm(layers.BatchNormalization):
    """Keras's batch normalisation (last axis), with statistics per worker or over the global batch.

    Moving variances are unbiased, as PyTorch computes them: with n values in a channel, n / (n - 1) of those
    on TensorFlow. Per worker, `RunningStatistics` weights moving statistics by the workers' samples.
    Synchronised, it sums values and squares over all workers, so uneven slices are exact.
    """

    keeps_statistics = True

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Normalise `inputs` (shape [B, ..., C])."""
        if mask is not None:
            raise NotImplementedError(
                "Expected no mask. Received: a mask. Normalise before masking."
            )
        worker = current()
        moments = collect()
        dtype = WIDE.get(inputs.dtype, inputs.dtype)
        x = inputs.movedim(-1, 1)  # a view, in PyTorch's channels_last layout
        gamma = None
        beta = None
        if self.scale:
            gamma = self.gamma.value.to(dtype)
        if self.center:
            beta = self.beta.value.to(dtype)
        learns = (training or moments) and self.trainable
        if learns and moments:
            out, mean, variance = normalise_over_slice(x, gamma, beta, self.epsilon)
            moments.add(self, values_per_channel(x), mean, variance)
        elif learns and worker is not None and worker.sync_sum is not None:
            out, mean, variance = normalise_over_workers(
                x, gamma, beta, self.moving_mean.value, self.epsilon, worker
            )
            self._move(mean, variance)
        elif learns and self._needs_own_move(x, dtype):
            out, mean, variance = normalise_over_slice(x, gamma, beta, self.epsilon)
            self._move(mean, variance)
        else:
            moving = (
                self.moving_mean.value.to(dtype),
                self.moving_variance.value.to(dtype),
            )
            add = 1 - self.momentum
            # One kernel normalises and moves the statistics in place.
            out = torch.batch_norm(
                x, gamma, beta, *moving, bool(learns), add, self.epsilon, True
            )
        return out.movedim(1, -1).to(inputs.dtype)

    def _needs_own_move(self, x: Any, dtype: torch.dtype) -> bool:
        """Whether the kernel cannot move the statistics: one value has no variance, or they are cast copies."""
        return x.numel() == x.shape[1] or self.moving_mean.value.dtype != dtype

    @torch.no_grad()
    def _move(self, mean: Any, variance: Any) -> None:
        add = 1 - self.momentum
        for variable, value in (
            (self.moving_mean, mean),
            (self.moving_variance, variance),
        ):
            moving = variable.value
            moving.mul_(self.momentum).add_(value.to(moving.dtype), alpha=add)


def normalise_over_slice(
    x: Any, weight: Any, bias: Any, epsilon: float
) -> tuple[Any, Any, Any]:
    """Return `x` (shape [B, C, ...]) normalised by its own mean and biased variance, and both statistics."""
    count = x.numel() // x.shape[1]
    mean, variance = _empty_statistics(x)
    # With a momentum of 1, the moving statistics are those of the slice. PyTorch computes the unbiased
    # variance, which is undefined for a single value.
    out = torch.batch_norm(x, weight, bias, mean, variance, True, 1.0, epsilon, True)
    if count == 1:
        return out, mean, torch.zeros_like(variance)
    return out, mean, variance * ((count - 1) / count)


def _empty_statistics(x: Any) -> tuple[Any, Any]:
    """Return room for means and variances of the channels of `x` (shape [B, C, ...])."""
    dtype = WIDE.get(x.dtype, x.dtype)
    mean = torch.zeros(x.shape[1], dtype=dtype, device=x.device)
    return mean, torch.zeros(x.shape[1], dtype=dtype, device=x.device)


def values_per_channel(x: Any) -> Any:
    """Return the number of values in each channel of `x` (shape [B, C, ...]), as a tensor on its device."""
    return x.new_full((), x.numel() // x.shape[1], dtype=torch.float64)


def normalise_over_workers(
    x: Any, weight: Any, bias: Any, about: Any, epsilon: float, worker: Working
) -> tuple[Any, Any, Any]:
    """Return `x` (shape [B, C, ...]) normalised over the global batch, its means and unbiased variances.

    On GPUs these are the kernels of `nn.SyncBatchNorm`. Elsewhere values and squares are summed over workers,
    centred on the moving mean `about`, which is the same on all of them: without centring, float32 would lose
    the variance of channels with a large mean. Empty slices, which hold one row of weight 0, do not count.
    """
    assert worker.sync_sum is not None
    if x.is_cuda and dist.is_initialized():
        return _normalise_by_kernels(x, weight, bias, epsilon, worker)
    dtype = WIDE.get(x.dtype, x.dtype)
    real = worker.slice.count > 0
    count = worker.slice.total * math.prod(x.shape[2:])
    centre = about.detach().to(dtype)
    shape = [1, -1] + [1] * (x.ndim - 2)
    axes = [0, *range(2, x.ndim)]
    centred = x.to(dtype) - centre.view(shape)

    both = torch.cat([centred.sum(axes), centred.square().sum(axes)])
    sums = both * float(real) / count
    offset, square = worker.sync_sum(sums).split(x.shape[1])
    # Rounding may make the difference of two equal squares negative.
    mean = offset + centre
    variance = torch.clamp(square - offset.square(), min=0)
    slope = torch.rsqrt(variance + epsilon)
    if weight is not None:
        slope = weight * slope
    if bias is None:
        shift = -offset * slope
    else:
        shift = bias - offset * slope
    out = (centred * slope.view(shape) + shift.view(shape)).to(x.dtype)
    return out, mean, variance * (count / max(count - 1, 1))


def _normalise_by_kernels(
    x: Any, weight: Any, bias: Any, epsilon: float, worker: Working
) -> tuple[Any, Any, Any]:
    """See `normalise_over_workers`: the same by the kernels of `nn.SyncBatchNorm`, which count rows."""
    rows = x
    if worker.slice.count == 0:
        rows = x[:0]
    mean, variance = _empty_statistics(x)
    out: Any = _functions.SyncBatchNorm.apply(  # type: ignore[no-untyped-call]
        rows,
        weight,
        bias,
        mean,
        variance,
        epsilon,
        1.0,
        dist.group.WORLD,
        dist.get_world_size(),
    )
    if worker.slice.count == 0:
        # The model goes on with the one row. The sum of nothing keeps the kernels in the backward pass,
        # where all workers must take part in their exchange.
        out = x * 0 + out.sum()
    return out, mean, variance


def replace_layer(layer: keras.layers.Layer, seed: int, numbers: Iterator[int]) -> None:
    """See `ReplaceLayer`."""
    # In place, since other layers and the functional graph of the model refer to it.
    layer.__class__ = TorchBatchNorm


class ModuleBatchNorm(nn.BatchNorm2d):
    """PyTorch's batch normalisation, with statistics per worker or over the global batch.

    Unlike PyTorch's, it accepts a slice with a single value per channel, whose variance is 0.
    """

    keeps_statistics = True
    over_workers = False
    frozen = False

    def _check_input_dim(self, input: Any) -> None:
        """Accept any number of axes, because this class replaces BatchNorm1d, 2d and 3d."""

    def forward(self, input: Any) -> Any:
        """Normalise `input` (shape [B, C, ...])."""
        if not self.training and not self.frozen and (moments := collect()) is not None:
            out, mean, variance = normalise_over_slice(
                input, self.weight, self.bias, self.eps
            )
            moments.add(self, values_per_channel(input), mean, variance)
            return out
        worker = current() if self.over_workers and self.training else None
        if worker is not None and worker.sync_sum is not None:
            out, mean, variance = normalise_over_workers(
                input, self.weight, self.bias, self.running_mean, self.eps, worker
            )
        elif self.training and input.numel() == input.shape[1]:
            out, mean, variance = normalise_over_slice(
                input, self.weight, self.bias, self.eps
            )
        else:
            return super().forward(input)
        self._move(mean, variance)
        return out

    @torch.no_grad()
    def _move(self, mean: Any, variance: Any) -> None:
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        weight = _share_of_batch(self.momentum, self.num_batches_tracked)
        for statistic, value in (
            (self.running_mean, mean),
            (self.running_var, variance),
        ):
            assert statistic is not None
            statistic.lerp_(value.to(statistic.dtype), weight)


def batch_norms(model: Any) -> list[Any]:
    """Return the layers of an adapted model or module that move running statistics now."""
    norms: list[Any] = []
    if isinstance(model, ModuleModel):
        for inner in model.module.modules():
            if isinstance(inner, ModuleBatchNorm) and not inner.frozen:
                norms.append(inner)
    else:
        for layer in all_layers(model):
            if isinstance(layer, TorchBatchNorm) and layer.trainable:
                norms.append(layer)
    return norms


def adapt_model(model: Any, *, seed: int, sync_batch_norm: bool) -> list[str]:
    """Replace the layers of a Keras model or module whose behaviour would depend on the number of workers.

    Dropout and other noise stay the framework's: they draw from PyTorch's generator, which gets a seed of the
    step and the worker's slice before each forward pass. Keras's convolutions and pooling keep PyTorch's
    layout.

    Returns:
        Always [].

    Raises:
        UserError: If a layer cannot be used with several workers.
    """
    if isinstance(model, ModuleModel):
        adapt_module(model, sync_batch_norm=sync_batch_norm)
        return []
    adapt(model, replace_layer, seed=seed, sync_batch_norm=sync_batch_norm, noise=False)
    for layer in all_layers(model):
        keep_layout(layer)
    return []


def adapt_module(model: ModuleModel, *, sync_batch_norm: bool) -> None:
    """Replace the batch normalisation of a module in place; see `adapt_model`."""
    for path, layer in model.module.named_modules():
        if not isinstance(layer, NORMS) or not layer.track_running_stats:
            continue
        asks = isinstance(layer, nn.SyncBatchNorm) and not sync_batch_norm
        if type(layer) not in NORMS or asks:
            raise UserError(
                "batch normalisation by nn.BatchNorm1d, nn.BatchNorm2d or nn.BatchNorm3d",
                f"{type(layer).__name__} at {path}",
                "Replace it by one of these; sync_batch_norm = true under [train] lets it span workers.",
            )
        inner = ""
        if path:
            inner = f"{path}."
        names: Any = layer
        names.moving_mean = model.named[f"{inner}running_mean"]
        names.moving_variance = model.named[f"{inner}running_var"]
        # In place, so that the user's module keeps its attributes, hooks and state dict.
        layer.__class__ = ModuleBatchNorm
        names.over_workers = sync_batch_norm


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
        layer.running_mean, layer.running_var, layer.num_batches_tracked, layer.momentum
    )


def _share_of_batch(momentum: float | None, count: Any) -> float:
    """Return the share of a batch's statistics in running ones; without a momentum, these are plain means."""
    if momentum is None:
        return 1 / float(count)
    return momentum


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
            old = 1 - _share_of_batch(each.momentum, each.count)
            kept += [old, old]  # of the mean, and of the variance
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
        self._before: list[Any] = []
        self._first: list[Any] | None = None

    @torch.no_grad()
    def begin(self) -> None:
        """Begin a step."""
        self._before = [variable.value.clone() for variable in self.variables]
        self._first = None

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
