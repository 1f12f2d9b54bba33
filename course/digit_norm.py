"""The course's model with batch normalisation after its layers (lesson 5)."""

from typing import Any

import keras
from keras import layers


def model(data: Any) -> keras.Model:
    """Build the model: images [B, 8, 8, 1] to probabilities of the digits [B, 10]."""
    return keras.Sequential(
        [
            keras.Input(data.input_shape),
            layers.Conv2D(16, 3, use_bias=False),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(32, use_bias=False),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(),
            layers.Dense(data.classes),
            layers.Activation("softmax"),
        ]
    )


loss = "cross_entropy"
metrics = ["accuracy"]
