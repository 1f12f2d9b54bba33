"""Layers that mean the same under every strategy: batch normalisation, and those of noise."""

import math
from collections.abc import Iterator
from typing import Any

import keras
import torch
from keras import layers

from scalestudy.engines.context import Working, current
from scalestudy.engines.keras.adapt import GROUP, RowNoise, draw_rows
from scalestudy.engines.torch import random

WIDE = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
"""Types in which statistics are taken; others in their own."""


class TorchBatchNorm(layers.BatchNormalization):
    """Keras's batch normalisation (last axis), with statistics per worker or over the global batch.

    Per worker, it normalises with the statistics of the worker's own slice. Synchronised, it sums counts,
    means and squares over all workers, weighted by the samples in each slice, so uneven slices are exact.
    The moving statistics, of the biased variance as Keras keeps it, move by the mean of the workers'
    statistics, weighted by their samples: each worker adds its own part, so that the mean over workers, which
    is taken before evaluation and saving, is exact.
    """

    keeps_statistics = True

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Normalise `inputs` (shape [B, ..., C])."""
        if mask is not None:
            raise NotImplementedError("Expected no mask. Received: a mask. Normalise before masking.")
        worker = current()
        dtype = WIDE.get(inputs.dtype, inputs.dtype)
        x = inputs.movedim(-1, 1)  # a view, which PyTorch knows as its channels_last
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
        """`x` normalised by its own mean and biased variance, and those."""
        count = x.numel() // x.shape[1]
        mean, variance = torch.zeros_like(gamma), torch.zeros_like(gamma)
        # By a momentum of one, moving statistics are those of the slice. The variance is the unbiased one,
        # of one value none.
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
    """Mean, biased variance and number of values over the global batch, by one sum over the workers.

    Squares are taken about the moving mean, alike on all workers: about zero, float32 would lose the variance
    of channels whose mean is large. `x` has the shape [B, C, ...].
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
    """Draws by PyTorch what TensorFlow draws."""

    def drawn(self, inputs: Any, worker: Working, *, normal: bool) -> Any:
        rows, part = inputs.shape[0], worker.slice
        key, groups, sample = self.next_draw(inputs.shape[1:], worker)
        draw = random.normal if normal else random.uniform
        noise = draw(key, (int(part.start) * groups, int(part.step)), rows * groups, inputs.device)
        return noise.view(rows, groups * GROUP)[:, : math.prod(sample)].view(rows, *sample)


def make_ours(layer: keras.layers.Layer, seed: int, numbers: Iterator[int]) -> None:
    """See `MakeOurs`."""
    if isinstance(layer, layers.BatchNormalization):
        layer.__class__ = TorchBatchNorm
    else:
        draw_rows(layer, TorchRowNoise, seed, next(numbers))
