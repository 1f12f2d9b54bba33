"""Keras layers and PyTorch modules whose statistics are the same for any division of a batch into slices."""

import math
from collections.abc import Iterator
from typing import Any

import keras
import torch
import torch.distributed as dist
from keras import layers
from torch import nn
from torch.nn.modules import _functions

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

    def call(
        self,
        inputs: Any,
        training: bool | None = None,
        mask: Any = None,
    ) -> Any:
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
                x,
                gamma,
                beta,
                self.moving_mean.value,
                self.epsilon,
                worker,
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
                x,
                gamma,
                beta,
                *moving,
                bool(learns),
                add,
                self.epsilon,
                True,
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
    x: Any,
    weight: Any,
    bias: Any,
    epsilon: float,
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
    x: Any,
    weight: Any,
    bias: Any,
    about: Any,
    epsilon: float,
    worker: Working,
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
    x: Any,
    weight: Any,
    bias: Any,
    epsilon: float,
    worker: Working,
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
                input,
                self.weight,
                self.bias,
                self.eps,
            )
            moments.add(self, values_per_channel(input), mean, variance)
            return out
        worker = current() if self.over_workers and self.training else None
        if worker is not None and worker.sync_sum is not None:
            out, mean, variance = normalise_over_workers(
                input,
                self.weight,
                self.bias,
                self.running_mean,
                self.eps,
                worker,
            )
        elif self.training and input.numel() == input.shape[1]:
            out, mean, variance = normalise_over_slice(
                input,
                self.weight,
                self.bias,
                self.eps,
            )
        else:
            return super().forward(input)
        self._move(mean, variance)
        return out

    @torch.no_grad()
    def _move(self, mean: Any, variance: Any) -> None:
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        weight = share_of_batch(self.momentum, self.num_batches_tracked)
        for statistic, value in (
            (self.running_mean, mean),
            (self.running_var, variance),
        ):
            assert statistic is not None
            statistic.lerp_(value.to(statistic.dtype), weight)


def share_of_batch(momentum: float | None, count: Any) -> float:
    """Return the share of a batch's statistics in running ones; without a momentum, these are plain means."""
    if momentum is None:
        return 1 / float(count)
    return momentum


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
    adapt(
        model,
        replace_layer,
        seed=seed,
        sync_batch_norm=sync_batch_norm,
        noise=False,
    )
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
