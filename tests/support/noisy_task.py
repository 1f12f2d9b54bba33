"""A task of digits with every kind of noise layer, for tests of the random numbers that workers draw."""

import keras
from keras import layers

loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]


def model(data):
    return keras.Sequential(
        [
            keras.Input(data.input_shape),
            layers.Conv2D(4, 3, strides=3, activation="selu"),
            layers.Dropout(0.1, noise_shape=(None, 1, 1, 4)),
            layers.AlphaDropout(0.1),
            layers.Flatten(),
            layers.GaussianDropout(0.2),
            layers.Dropout(0.3, noise_shape=(1, None)),  # the same for all samples
            layers.GaussianNoise(0.1),
            layers.Dense(data.classes, activation="softmax"),
        ]
    )
