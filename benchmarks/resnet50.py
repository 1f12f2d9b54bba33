"""ResNet-50 (He et al. 2015) as a task file, for `gpu.py`: 25.6 million weights, 102 MB of gradients."""

from typing import Any

import keras
from keras import layers

kind = "classes"
train = {"batch_size": 64}
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]


def model(data: Any) -> keras.Model:
    """From images [B, H, W, 3] to probabilities [B, classes]; random weights."""
    body = keras.applications.ResNet50(
        weights=None,
        input_shape=data.input_shape,
        classes=data.classes,
        classifier_activation=None,
    )
    return keras.Model(
        body.input, layers.Activation("softmax", dtype="float32")(body.output)
    )
