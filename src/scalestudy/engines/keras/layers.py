"""Layers of a model: seeds and precision, freezing, and counts of operations."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

import keras

from scalestudy.engines.base import Flops
from scalestudy.engines.keras.private import all_layers, layers_within


def begin(seed: int, precision: str) -> None:
    """Set seeds and precision for all that Keras builds from now on. Keras treats "tf32" as float32."""
    keras.utils.set_random_seed(seed)
    keras.config.set_floatx("float64" if precision == "float64" else "float32")
    keras.config.set_dtype_policy("float32" if precision == "tf32" else precision)


@contextmanager
def kept(model: keras.Model, names: Sequence[str]) -> Iterator[None]:
    """Freeze the named layers of a model and their inner layers in the block, and in functions traced there.

    Frozen batch normalisation uses its moving statistics.
    """
    layers = [inner for name in names for inner in layers_within(model.get_layer(name))]
    before = [layer.trainable for layer in layers]
    for layer in layers:
        layer.trainable = False
    try:
        yield
    finally:
        for layer, trainable in zip(layers, before, strict=True):  # outer ones first, as they set inner ones
            layer.trainable = trainable


_TRANSPOSED = keras.layers.Conv1DTranspose, keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose
_COUNTED = (
    keras.layers.Dense,
    keras.layers.Conv1D,
    keras.layers.Conv2D,
    keras.layers.Conv3D,
    *_TRANSPOSED,
    keras.layers.DepthwiseConv1D,
    keras.layers.DepthwiseConv2D,
    keras.layers.SeparableConv1D,
    keras.layers.SeparableConv2D,
)
"""Layers that apply each of their kernels once at each position."""
_ATTENTION = (keras.layers.Attention, keras.layers.AdditiveAttention)
"""Layers that multiply without kernels."""


def in_order(model: keras.Model) -> Iterator[keras.layers.Layer]:
    """Yield all layers of a model, in the order of computation if the model defines it."""
    for layer in model.layers:
        yield layer
        yield from in_order(layer) if isinstance(layer, keras.Model) else all_layers(layer)[1:]


def multiply_adds(model: keras.Model, variables: Sequence[keras.Variable]) -> list[int] | None:
    """Count the multiplications with each variable in a sample's forward pass; backward takes twice as many.

    Kernels of dense layers and convolutions count; biases and normalisation, which take little time, do not.

    Returns:
        One number per variable, in their order; None if a layer is of another type or its shape is unknown.
    """
    if not isinstance(model, keras.Model):  # a PyTorch module
        return model.multiply_adds(variables)
    known: dict[int, int] = {}
    for layer in in_order(model):
        work = _work(layer)
        if work is None:
            return None
        known |= work
    return [known.get(id(variable), 0) for variable in variables]


def flops_of(model: keras.Model, trained: Sequence[keras.Variable]) -> Flops:
    """Count the floating-point operations of a step that trains these variables; see `multiply_adds`.

    A trained kernel multiplies once more for its gradient. A layer after a trained variable multiplies once
    more for the gradient of its input.
    """
    if not isinstance(model, keras.Model):
        count = model.flops(trained)
        return Flops(count or None, () if count is not None else (model.name,))
    learns, total, behind = {id(variable) for variable in trained}, 0, False
    uncounted = set[str]()
    for layer in in_order(model):
        work = _work(layer)
        if work is None:
            uncounted.add(type(layer).__name__)
            continue
        total += sum(count * (1 + behind + (variable in learns)) for variable, count in work.items())
        behind = behind or any(id(weight) in learns for weight in layer.weights)
    known = total and not uncounted
    return Flops(2.0 * total if known else None, tuple(sorted(uncounted)))


def _work(layer: keras.layers.Layer) -> dict[int, int] | None:
    """Return the multiplications per sample with each of a layer's own kernels, by id; None if unknown."""
    within = {id(weight) for inner in layers_within(layer)[1:] for weight in inner.weights}
    kernels = [weight for weight in layer.weights if len(weight.shape) > 1 and id(weight) not in within]
    looks_up = isinstance(layer, keras.layers.Embedding)
    if looks_up or (not kernels and not isinstance(layer, _ATTENTION)):
        return {}
    positions = _positions(layer) if isinstance(layer, _COUNTED) else None
    return None if positions is None else {id(kernel): prod(kernel.shape) * positions for kernel in kernels}


def _positions(layer: keras.layers.Layer) -> int | None:
    """Return the number of positions in a sample at which a layer applies its kernel; None if unknown."""
    try:
        shape = (layer.input if isinstance(layer, _TRANSPOSED) else layer.output).shape
    except (AttributeError, ValueError):  # it was not called on symbols exactly once
        return None
    inner = shape[1:-1] if keras.config.image_data_format() == "channels_last" else shape[2:]
    return None if None in inner else prod(inner)
