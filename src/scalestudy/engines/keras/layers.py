"""Questions about the layers of a model, and freezing some of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

import keras

from scalestudy.engines.keras.private import all_layers, layers_within


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


_TRANSPOSED = (
    keras.layers.Conv1DTranspose, keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose
)  # fmt: skip


def multiply_adds(model: keras.Model, variables: Sequence[keras.Variable]) -> list[int] | None:
    """Multiplications with each variable in a sample's forward pass; its backward pass has twice as many.

    Kernels of dense layers and convolutions count; biases and normalisation, which take little time, do not.

    Returns:
        One number a variable, in their order; None where the model does not tell the shapes of its layers.
    """
    found: dict[int, int] = {}
    for layer in all_layers(model):
        kernels = [weight for weight in _own(layer) if len(weight.shape) > 1]
        if not kernels:
            continue
        positions = _positions(layer)
        if positions is None:
            return None
        found |= {id(weight): prod(weight.shape) * positions for weight in kernels}
    return [found.get(id(variable), 0) for variable in variables]


def _own(layer: keras.layers.Layer) -> list[keras.Variable]:
    return [] if isinstance(layer, keras.Model) else list(layer.trainable_weights)


def _positions(layer: keras.layers.Layer) -> int | None:
    """Places in one sample at which a layer applies its kernel; None where that is not known."""
    try:
        shape = (layer.input if isinstance(layer, _TRANSPOSED) else layer.output).shape
    except (AttributeError, ValueError):  # it was never called on symbols, or several times
        return None
    inner = shape[1:-1] if keras.config.image_data_format() == "channels_last" else shape[2:]
    return None if None in inner else prod(inner)
