"""Keras layers and PyTorch modules that behave the same under every strategy: batch norm, and noise."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import keras
import torch
from keras import layers
from torch import nn

from scalestudy.engines.context import Working, current
from scalestudy.engines.keras.adapt import GROUP, RowNoise, adapt, draw_rows
from scalestudy.engines.torch import random
from scalestudy.tasks.module import ModuleModel
from scalestudy.util.errors import UserError

WIDE = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
"""Types in which statistics are computed; for other types, the type itself."""
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
SPATIAL = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class TorchBatchNorm(layers.BatchNormalization):
    """Keras's batch normalisation (last axis), with statistics per worker or over the global batch.

    Per worker, it normalises with the statistics of the worker's own slice. Synchronised, it sums counts,
    values and squares over all workers, so uneven slices are exact. The moving statistics (with the biased
    variance, as in Keras) are updated by the mean of the workers' statistics, weighted by their samples.
    Each worker adds its own part, so the mean over workers, computed before evaluation and saving, is exact.
    """

    keeps_statistics = True

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Normalise `inputs` (shape [B, ..., C])."""
        if mask is not None:
            raise NotImplementedError("Expected no mask. Received: a mask. Normalise before masking.")
        worker = current()
        dtype = WIDE.get(inputs.dtype, inputs.dtype)
        x = inputs.movedim(-1, 1)  # a view, in PyTorch's channels_last layout
        gamma = self.gamma.value.to(dtype) if self.scale else x.new_ones(x.shape[1], dtype=dtype)
        beta = self.beta.value.to(dtype) if self.center else x.new_zeros(x.shape[1], dtype=dtype)
        learns = training and self.trainable
        if learns and worker is not None and worker.sync_sum is not None:
            wide = x.to(dtype)
            mean, variance, _ = statistics_of_all(wide, self.moving_mean.value, worker)
            self._move(mean, variance, worker, shared=True)
            slope = gamma * torch.rsqrt(variance + self.epsilon)
            shape = [1, -1] + [1] * (x.ndim - 2)
            out = wide * slope.view(shape) + (beta - mean * slope).view(shape)
        elif learns:
            out, mean, variance = self._of_slice(x, gamma, beta)
            self._move(mean, variance, worker)
        else:
            known = self.moving_mean.value.to(dtype), self.moving_variance.value.to(dtype)
            out = torch.batch_norm(x, gamma, beta, *known, False, 0.0, self.epsilon, True)
        return out.movedim(1, -1).to(inputs.dtype)

    def _of_slice(self, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any, Any]:
        """Return `x` normalised by its own mean and biased variance, and both statistics."""
        count = x.numel() // x.shape[1]
        mean, variance = torch.zeros_like(gamma), torch.zeros_like(gamma)
        # With a momentum of 1, the moving statistics are those of the slice. PyTorch computes the unbiased
        # variance, which is undefined for a single value.
        out = torch.batch_norm(x, gamma, beta, mean, variance, True, 1.0, self.epsilon, True)
        return out, mean, variance * ((count - 1) / count) if count > 1 else torch.zeros_like(variance)

    @torch.no_grad()
    def _move(self, mean: Any, variance: Any, worker: Working | None, shared: bool = False) -> None:
        keep, add = self.momentum, 1 - self.momentum
        if worker is not None and not shared:
            add *= worker.share
            keep = keep if worker.slice.first else 1.0
        for variable, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            variable.value.mul_(keep).add_(value.to(variable.value.dtype), alpha=add)


def statistics_of_all(x: Any, moving_mean: Any, worker: Working) -> tuple[Any, Any, Any]:
    """Return mean, biased variance and number of values over the global batch, by one sum over workers.

    Values are centred on the moving mean, which is the same on all workers. Without centring, float32 would
    lose the variance of channels with a large mean. `x` has shape [B, C, ...].
    """
    assert worker.sync_sum is not None
    about = moving_mean.detach().to(x.dtype)
    real = float(worker.slice.count > 0)
    pixels = worker.slice.count * math.prod(x.shape[2:])
    centred = x - about.view([1, -1] + [1] * (x.ndim - 2))
    axes = [axis for axis in range(x.ndim) if axis != 1]
    counted = torch.full([1], float(pixels), dtype=x.dtype, device=x.device)
    packed = torch.cat([real * centred.sum(axes), real * centred.square().sum(axes), counted])
    sums, squares, count = worker.sync_sum(packed).split([x.shape[1], x.shape[1], 1])
    mean = sums / count
    return mean + about, torch.clamp(squares / count - mean.square(), min=0), count


class TorchRowNoise(RowNoise):
    """Row noise drawn with PyTorch; the same numbers as with TensorFlow."""

    def drawn(self, inputs: Any, worker: Working, *, normal: bool) -> Any:
        rows, part = inputs.shape[0], worker.slice
        key, groups, sample = self.next_draw(inputs.shape[1:], worker)
        draw = random.normal if normal else random.uniform
        noise = draw(key, (int(part.start) * groups, int(part.step)), rows * groups, inputs.device)
        return noise.view(rows, groups * GROUP)[:, : math.prod(sample)].view(rows, *sample)


def replace_layer(layer: keras.layers.Layer, seed: int, numbers: Iterator[int]) -> None:
    """See `ReplaceLayer`."""
    if isinstance(layer, layers.BatchNormalization):
        layer.__class__ = TorchBatchNorm
    else:
        draw_rows(layer, TorchRowNoise, seed, next(numbers))


class ModuleBatchNorm(nn.BatchNorm2d):
    """PyTorch's batch normalisation, with statistics per worker or over the global batch.

    Like `TorchBatchNorm`, except that the running variance is unbiased and `momentum` is the weight of the
    new value, as in PyTorch.
    """

    keeps_statistics, frozen = True, False

    def _check_input_dim(self, input: Any) -> None:
        """Accept any number of axes, because this class replaces BatchNorm1d, 2d and 3d."""

    def forward(self, input: Any) -> Any:
        """Normalise `input` (shape [B, C, ...])."""
        worker = current()
        if self.frozen:
            known = self.running_mean, self.running_var
            return nn.functional.batch_norm(input, *known, self.weight, self.bias, False, 0.0, self.eps)
        if not self.training or worker is None:
            return super().forward(input)
        dtype = WIDE.get(input.dtype, input.dtype)
        if worker.sync_sum is not None:
            wide = input.to(dtype)
            mean, variance, count = statistics_of_all(wide, self.running_mean, worker)
            self._move(mean, variance * (count / torch.clamp(count - 1, min=1)), worker, shared=True)
            slope = torch.rsqrt(variance + self.eps)
            slope = slope if self.weight is None else slope * self.weight
            shift = -mean * slope if self.bias is None else self.bias - mean * slope
            shape = [1, -1] + [1] * (input.ndim - 2)
            return (wide * slope.view(shape) + shift.view(shape)).to(input.dtype)
        mean = torch.zeros(input.shape[1], dtype=dtype, device=input.device)
        variance = torch.zeros_like(mean)
        # With a momentum of 1, the running statistics are those of the slice.
        out = torch.batch_norm(
            input, self.weight, self.bias, mean, variance, True, 1.0, self.eps, torch.backends.cudnn.enabled
        )
        one = input.numel() == input.shape[1]  # a single value has no unbiased variance
        self._move(mean, torch.zeros_like(variance) if one else variance, worker)
        return out

    @torch.no_grad()
    def _move(self, mean: Any, variance: Any, worker: Working, shared: bool = False) -> None:
        assert self.num_batches_tracked is not None
        first = worker.slice.first
        if first:
            self.num_batches_tracked.add_(1)
        add = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        keep = 1 - add if first else 1.0
        part = add if shared else add * float(worker.share)
        for statistic, value in ((self.running_mean, mean), (self.running_var, variance)):
            assert statistic is not None
            statistic.mul_(keep).add_(value.to(statistic.dtype), alpha=part)


class ModuleDropout(TorchRowNoise, nn.Dropout):
    """PyTorch's dropout with `RowNoise`; it drops the same values as Keras with channels last."""

    def forward(self, input: Any) -> Any:
        """Drop values of `input` (shape [B, ...]), or channels of [B, C, ...], in training."""
        worker = current()
        if not self.training or self.p == 0 or worker is None:
            return super().forward(input)
        first = self.spatial or input.ndim > 3
        kept = self.drawn(input.movedim(1, -1) if first else input, worker, normal=False) >= self.p
        kept = kept.movedim(-1, 1) if first else kept
        return input * (kept.to(input.dtype) * (1 / (1 - self.p) if self.p < 1 else 0.0))


def adapt_model(model: Any, *, seed: int, sync_batch_norm: bool) -> list[str]:
    """Replace the layers of a Keras model or module whose behaviour would depend on the number of workers.

    Returns:
        Names of the layers of a Keras model whose noise still depends on the number of workers.

    Raises:
        UserError: If a layer cannot be used with several workers.
    """
    if isinstance(model, ModuleModel):
        adapt_module(model, seed=seed, sync_batch_norm=sync_batch_norm)
        return []
    return adapt(model, replace_layer, seed=seed, sync_batch_norm=sync_batch_norm)


def adapt_module(model: ModuleModel, *, seed: int, sync_batch_norm: bool) -> None:
    """Replace the batch normalisation and dropout of a module in place; see `adapt_model`."""
    numbers = itertools.count()
    for path, layer in model.module.named_modules():
        if isinstance(layer, NORMS) and layer.track_running_stats:
            asks = isinstance(layer, nn.SyncBatchNorm) and not sync_batch_norm
            if type(layer) not in NORMS or asks:
                raise UserError(
                    "batch normalisation by nn.BatchNorm1d, nn.BatchNorm2d or nn.BatchNorm3d",
                    f"{type(layer).__name__} at {path}",
                    "Replace it by one of these; sync_batch_norm = true under [train] lets it span workers.",
                )
            inner = f"{path}." if path else ""
            names: Any = layer
            names.moving_mean = model.named[f"{inner}running_mean"]
            names.moving_variance = model.named[f"{inner}running_var"]
            layer.__class__ = ModuleBatchNorm
        elif type(layer) in (nn.Dropout, *SPATIAL):
            spatial = isinstance(layer, SPATIAL)
            layer.__class__ = ModuleDropout
            layer.draw_by(seed, next(numbers), spatial=spatial)  # type: ignore[operator]
