"""How Keras's noise layers apply the random numbers drawn for each sample, under any engine."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import layers, ops

from scalestudy.engines.context import current

SPATIAL = (layers.SpatialDropout1D, layers.SpatialDropout2D, layers.SpatialDropout3D)
SATURATED = -1.7580993408473766
"""Value of SELU for large negative inputs (Klambauer et al. 2017, arXiv:1706.02515)."""

SLICES, DRAWS = 1_000_003, 7_919
"""Distance between the seeds of rows, by which workers differ, and between the seeds of draws."""


class Noise(NamedTuple):
    """The noise of a layer.

    Attributes:
        normal: Whether the numbers are standard normal; otherwise they are uniform in [0, 1).
        applied: (inputs, shape [B, ...], numbers) -> outputs.
    """

    normal: bool
    applied: Callable[[Any, Any], Any]


def noise_of(layer: keras.layers.Layer) -> Noise | None:
    """Return the noise of a layer that draws numbers for each sample; None for others, or without effect."""
    if not getattr(layer, "rate", 0) and not getattr(layer, "stddev", 0):
        return None
    shape = getattr(layer, "noise_shape", None)
    if shape is not None and shape[0] is not None:  # all samples share the numbers
        return None
    return next((noise(layer) for kind, noise in _KINDS.items() if isinstance(layer, kind)), None)


def drawn_shape(layer: keras.layers.Layer, sample: Sequence[Any]) -> list[Any]:
    """Return the shape of the numbers that a layer draws for a sample of this shape."""
    if isinstance(layer, SPATIAL):  # one number per channel
        ones = [1] * (len(sample) - 1)
        last = getattr(layer, "data_format", "channels_last") == "channels_last"
        return [*ones, sample[-1]] if last else [sample[0], *ones]
    shape = getattr(layer, "noise_shape", None)
    if shape is None:
        return list(sample)
    return [length if fixed is None else fixed for fixed, length in zip(shape[1:], sample, strict=True)]


def seeds_by_step(generator: Any, *, apart: bool) -> Callable[..., Any]:
    """Return a replacement for `next` of a seed generator; seeds depend on the step and the worker's slice.

    With `apart`, no two workers draw the same numbers, so the noise depends on the division of the batch.
    Otherwise all workers draw the same numbers, as a single worker would.
    """
    plain = generator.next

    def next_seed(ordered: bool = True) -> Any:
        worker = current()
        if worker is None:
            return plain(ordered)
        again = 0
        if worker.calls is not None:
            again = worker.calls[id(generator)]
            worker.calls[id(generator)] += 1
        seed = generator.state.value[0]
        start, step = (
            ops.cast(ops.convert_to_tensor(number), seed.dtype)
            for number in (worker.slice.start, worker.slice.step)
        )
        return ops.stack([seed + (start * SLICES if apart else 0) + again * DRAWS, step])

    return next_seed


def _dropout(layer: layers.Dropout) -> Noise:
    def applied(inputs: Any, drawn: Any) -> Any:
        return inputs * (ops.cast(drawn >= layer.rate, inputs.dtype) * (1 / (1 - layer.rate)))

    return Noise(False, applied)


def _alpha_dropout(layer: layers.AlphaDropout) -> Noise:
    rate = layer.rate
    scale = ((1 - rate) * (1 + rate * SATURATED**2)) ** -0.5

    def applied(inputs: Any, drawn: Any) -> Any:
        kept = ops.cast(drawn >= rate, inputs.dtype)
        return scale * (inputs * kept + SATURATED * (1 - kept)) - scale * SATURATED * rate

    return Noise(False, applied)


def _gaussian_dropout(layer: layers.GaussianDropout) -> Noise:
    deviation = math.sqrt(layer.rate / (1 - layer.rate))
    return Noise(True, lambda inputs, drawn: inputs * ops.cast(1 + drawn * deviation, inputs.dtype))


def _gaussian_noise(layer: layers.GaussianNoise) -> Noise:
    return Noise(True, lambda inputs, drawn: inputs + ops.cast(drawn * layer.stddev, inputs.dtype))


_KINDS: dict[type[keras.layers.Layer], Callable[[Any], Noise]] = {
    layers.Dropout: _dropout,
    layers.AlphaDropout: _alpha_dropout,
    layers.GaussianDropout: _gaussian_dropout,
    layers.GaussianNoise: _gaussian_noise,
}
