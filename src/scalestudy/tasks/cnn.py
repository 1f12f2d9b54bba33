"""The small CNN of the published MNIST scaling course (OpenHackathons, distributed deep learning)."""

import keras
from keras import layers

from scalestudy.tasks.task import DataInfo, output_dtype

kind = "classes"
data = "digits"
train = {"epochs": 8, "batch_size": 128}


def cnn(input_shape: tuple[int, int, int], classes: int) -> keras.Model:
    """Conv 32, Conv 64, max-pool, dropout ¼, Dense 128, dropout ½, softmax.

    Returns:
        A model from [B, H, W, C] to probabilities [B, classes].
    """
    return keras.Sequential(
        [
            keras.Input(input_shape),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(classes),
            layers.Activation("softmax", dtype=output_dtype()),
        ],
        name="cnn",
    )


def model(data: DataInfo) -> keras.Model:
    """Return the network for this data."""
    return cnn(data.input_shape, data.classes)


loss = "cross_entropy"
metrics = ["accuracy"]
