"""The course's model: a small CNN for 8 x 8 digits, which compiles in a second or two.

It has no dropout or batch normalisation, so its training depends on the batches alone.
"""

from typing import Any

import keras
from keras import layers


def model(data: Any) -> keras.Model:
    """Build the model: images [B, 8, 8, 1] to probabilities of the digits [B, 10]."""
    return keras.Sequential(
        [
            keras.Input(data.input_shape),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(data.classes),
            layers.Activation("softmax"),
        ]
    )


loss = "cross_entropy"
metrics = ["accuracy"]
