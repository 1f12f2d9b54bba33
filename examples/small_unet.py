"""A small U-Net for indents (two classes): a model of your own, as a study file names it.

Two halvings and 30,000 weights need little computing and little communication. Group normalisation treats
each image by itself, so one global batch gives the same updates on any number of workers, and one training
tells the quality of all. Batch normalisation sees only its worker's images.
"""

from typing import Any

import keras
from keras import layers


def model(data: Any) -> keras.Model:
    """Build the model: images [B, H, W, C] to the probability of an indent in each pixel [B, H, W]."""
    inputs = keras.Input(data.input_shape)
    x, skips = inputs, []
    for filters in (8, 16):
        x = block(x, filters)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, 32)
    for filters, skip in zip((16, 8), reversed(skips), strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = block(layers.Concatenate()([x, skip]), filters)
    x = layers.Reshape(data.input_shape[:2])(layers.Conv2D(1, 1)(x))
    return keras.Model(inputs, layers.Activation("sigmoid")(x))


def block(x: Any, filters: int) -> Any:
    """Apply convolution, group normalisation and ReLU twice."""
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.GroupNormalization(groups=4)(x)
        x = layers.ReLU()(x)
    return x


def loss(targets: Any, predictions: Any) -> Any:
    """Loss of each image [B]: mean cross-entropy of its pixels plus Dice loss.

    The Dice loss learns small shapes sooner (Milletari, Navab and Ahmadi, 3DV 2016).
    """
    pixels = keras.ops.mean(
        keras.losses.binary_crossentropy(targets, predictions), axis=1
    )
    return pixels + keras.losses.dice(targets, predictions, axis=(1, 2))


metrics = [keras.metrics.BinaryIoU(target_class_ids=[1], threshold=0.5, name="iou")]
