"""The U-Net of the published scaling study on micrographs (Ronneberger 2015; Zenodo 7639190)."""

from typing import Any

import keras
from keras import layers

from scalestudy.tasks.task import DataInfo, output_dtype

kind = "masks"
data = "indents"
train = {"epochs": 20, "batch_size": 16, "schedule": "steps"}

ENCODER = (8, 16, 32, 64)
BRIDGE = 128
HALVINGS = 2 ** len(ENCODER)


def unet(input_shape: tuple[int, int, int], classes: int) -> keras.Model:
    """Encoder 8-16-32-64, bridge 128, decoder 64-32-16-8; a block is twice convolution, norm and ReLU.

    It maps [B, H, W, C] to a sigmoid [B, H, W, 1] for 2 classes, else to a softmax [B, H, W, classes]. Sizes
    that cannot be halved four times are padded with zeros inside the model, and its outputs are cropped.
    """
    height, width, _ = input_shape
    inputs = keras.Input(input_shape)
    missing_rows = -height % HALVINGS
    missing_columns = -width % HALVINGS
    padding = (_halves(missing_rows), _halves(missing_columns))
    padded = padding != ((0, 0), (0, 0))
    x = inputs
    if padded:
        x = layers.ZeroPadding2D(padding)(inputs)
    skips = []
    for filters in ENCODER:
        x = _block(x, filters)
        # Before the pooling, which loses the positions that the decoder needs.
        skips.append(x)
        x = layers.MaxPooling2D(2)(x)
    x = _block(x, BRIDGE)
    for filters, skip in zip(reversed(ENCODER), reversed(skips), strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2, padding="same")(x)
        joined = layers.Concatenate()([x, skip])
        x = _block(joined, filters)
    channels, activation = classes, "softmax"
    if classes == 2:
        channels, activation = 1, "sigmoid"
    x = layers.Conv2D(channels, 1)(x)
    if padded:
        x = layers.Cropping2D(padding)(x)
    # The last layer, so that the loss finds its logits.
    outputs = layers.Activation(activation, dtype=output_dtype())(x)
    return keras.Model(inputs, outputs, name="unet")


def model(data: DataInfo) -> keras.Model:
    """Return the network for this data."""
    return unet(data.input_shape, data.classes)


loss = "cross_entropy"
metrics = ["iou"]


def _block(x: Any, filters: int) -> Any:
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


def _halves(amount: int) -> tuple[int, int]:
    less = amount // 2
    more = amount - less
    return less, more
