"""PyTorch's own batch normalisation and dropout, as they mean the same under every strategy."""

import itertools
from typing import Any

import torch
from torch import nn

from scalestudy.engines.context import Working, current
from scalestudy.engines.keras.adapt import adapt
from scalestudy.engines.torch.layers import WIDE, TorchRowNoise, make_ours, statistics_of_all
from scalestudy.tasks.module import ModuleModel
from scalestudy.util.errors import UserError

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
SPATIAL = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class ModuleBatchNorm(nn.BatchNorm2d):
    """PyTorch's batch normalisation, with statistics per worker or over the global batch.

    As Keras's here (see `TorchBatchNorm`), but that the running variance is of the unbiased one, as PyTorch
    keeps it, and `momentum` is the part of what is new.
    """

    keeps_statistics, frozen = True, False

    def _check_input_dim(self, input: Any) -> None:
        """Any number of axes: the class that the user chose has been replaced."""

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
        # By a momentum of one, running statistics are those of the slice.
        out = torch.batch_norm(
            input, self.weight, self.bias, mean, variance, True, 1.0, self.eps, torch.backends.cudnn.enabled
        )
        one = input.numel() == input.shape[1]  # of one value there is no unbiased variance
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
    """PyTorch's dropout, by `RowNoise`: as Keras would draw for the same values, channels last."""

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
    """Make ours of the layers of a Keras model or a module whose meaning would depend on the workers.

    Returns:
        The names of a Keras model's layers whose noise depends on how many workers there are.

    Raises:
        UserError: If a layer cannot be shared out to workers.
    """
    if isinstance(model, ModuleModel):
        adapt_module(model, seed=seed, sync_batch_norm=sync_batch_norm)
        return []
    return adapt(model, make_ours, seed=seed, sync_batch_norm=sync_batch_norm)


def adapt_module(model: ModuleModel, *, seed: int, sync_batch_norm: bool) -> None:
    """Make ours of a module's batch normalisation and dropout, where they are; see `adapt_model`."""
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
