"""A task: a U-Net with two levels and one convolution per block.

It has all layer types of the published U-Net and compiles in a fraction of the time.
"""

import keras
from keras import layers

from scalestudy.tasks.unet import loss, metrics

__all__ = ["kind", "loss", "metrics", "model"]

kind = "masks"  # as a literal, it can be read without importing this file


def block(x, filters):
    return layers.ReLU()(
        layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same")(x))
    )


def model(data):
    inputs = keras.Input(data.input_shape)
    outer = block(inputs, 8)
    inner = block(layers.MaxPooling2D(2)(outer), 16)
    joined = layers.Concatenate()(
        [layers.Conv2DTranspose(8, 2, strides=2)(inner), outer]
    )
    x = layers.Conv2D(1, 1)(block(joined, 8))
    dtype = None if keras.config.floatx() == "float64" else "float32"
    return keras.Model(inputs, layers.Activation("sigmoid", dtype=dtype)(x))
