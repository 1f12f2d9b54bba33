"""Layers that stay as they are while others learn."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import keras

from scalestudy.engines.keras.private import layers_within


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
