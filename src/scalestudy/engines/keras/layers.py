"""Questions about the layers of a model, their precision, and freezing some of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

import keras

from scalestudy.engines.base import Flops
from scalestudy.engines.keras.private import all_layers, layers_within


def begin(seed: int, precision: str) -> None:
    """Seeds and precision of what Keras builds from now on. TensorFloat-32 is float32 to it."""
    keras.utils.set_random_seed(seed)
    keras.config.set_floatx("float64" if precision == "float64" else "float32")
    keras.config.set_dtype_policy("float32" if precision == "tf32" else precision)


@contextmanager
def kept(model: keras.Model, names: Sequence[str]) -> Iterator[None]:
    """Within, these layers of a model do not train, nor what they hold; what is traced within stays so.

    Batch normalisation in them goes by its moving statistics.
    """
    layers = [inner for name in names for inner in layers_within(model.get_layer(name))]
    before = [layer.trainable for layer in layers]
    for layer in layers:
        layer.trainable = False
    try:
        yield
    finally:
        for layer, trainable in zip(layers, before, strict=True):  # outer ones first, which set inner ones
            layer.trainable = trainable


_TRANSPOSED = keras.layers.Conv1DTranspose, keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose
_COUNTED = (
    keras.layers.Dense, keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D, *_TRANSPOSED,
    keras.layers.DepthwiseConv1D, keras.layers.DepthwiseConv2D, keras.layers.SeparableConv1D,
    keras.layers.SeparableConv2D,
)  # fmt: skip
"""Layers that apply each of their kernels once at each place."""
_ATTENTION = (keras.layers.Attention, keras.layers.AdditiveAttention)
"""Layers that multiply without weights."""


def in_order(model: keras.Model) -> Iterator[keras.layers.Layer]:
    """All layers of a model, in the order in which they compute where it tells."""
    for layer in model.layers:
        yield layer
        yield from in_order(layer) if isinstance(layer, keras.Model) else all_layers(layer)[1:]


def multiply_adds(model: keras.Model, variables: Sequence[keras.Variable]) -> list[int] | None:
    """Multiplications with each variable in a sample's forward pass; its backward pass has twice as many.

    Kernels of dense layers and convolutions count; biases and normalisation, which take little time, do not.

    Returns:
        One number a variable, in their order; None where the layers are of other kinds, or do not tell their
        shapes.
    """
    if not isinstance(model, keras.Model):  # a module of PyTorch's
        return model.multiply_adds(variables)
    known: dict[int, int] = {}
    for layer in in_order(model):
        work = _work(layer)
        if work is None:
            return None
        known |= work
    return [known.get(id(variable), 0) for variable in variables]


def flops_of(model: keras.Model, trained: Sequence[keras.Variable]) -> Flops:
    """Floating-point operations of a step that trains these variables, by the same multiplications.

    A trained kernel multiplies again for its gradient; and so does each layer behind a trained variable, for
    the gradient of its input.
    """
    if not isinstance(model, keras.Model):
        return Flops(model.flops(trained) or None)
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
    """Multiplications of a sample with each of a layer's own kernels, by their ids; None if unknown."""
    within = {id(weight) for inner in layers_within(layer)[1:] for weight in inner.weights}
    kernels = [weight for weight in layer.weights if len(weight.shape) > 1 and id(weight) not in within]
    looks_up = isinstance(layer, keras.layers.Embedding)
    if looks_up or (not kernels and not isinstance(layer, _ATTENTION)):
        return {}
    positions = _positions(layer) if isinstance(layer, _COUNTED) else None
    return None if positions is None else {id(kernel): prod(kernel.shape) * positions for kernel in kernels}


def _positions(layer: keras.layers.Layer) -> int | None:
    """Places in one sample at which a layer applies its kernel; None where that is not known."""
    try:
        shape = (layer.input if isinstance(layer, _TRANSPOSED) else layer.output).shape
    except (AttributeError, ValueError):  # it was never called on symbols, or several times
        return None
    inner = shape[1:-1] if keras.config.image_data_format() == "channels_last" else shape[2:]
    return None if None in inner else prod(inner)
