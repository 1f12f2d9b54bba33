"""The task `cnn` without dropout, which frameworks draw each in their own way."""

import keras

from scalestudy.tasks import cnn
from scalestudy.tasks.cnn import loss, metrics

__all__ = ["data", "kind", "loss", "metrics", "model"]

kind = "classes"
data = "digits"


def model(data):
    with_dropout = cnn.model(data)
    layers = [
        layer
        for layer in with_dropout.layers
        if not isinstance(layer, keras.layers.Dropout)
    ]
    return keras.Sequential([keras.Input(data.input_shape), *layers], name="cnn")
