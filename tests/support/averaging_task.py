"""A task whose callback replaces the final weights by their mean over epochs."""

import keras
import numpy as np
from keras import layers


class Doubled(layers.Layer):
    """A custom layer."""

    def call(self, inputs):
        return 2 * inputs


class Averaging(keras.callbacks.Callback):
    """Read all weights after each epoch, and set their mean at the end."""

    def on_train_begin(self, logs=None):
        self.seen = []

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append(self.model.get_weights())

    def on_train_end(self, logs=None):
        self.model.set_weights(
            [np.mean(each, 0) for each in zip(*self.seen, strict=True)]
        )


def model(data):
    inputs = keras.Input(data.input_shape)
    x = layers.BatchNormalization(momentum=0.5)(layers.Conv2D(4, 3)(inputs))
    x = layers.Dropout(0.2)(Doubled()(layers.ReLU()(x)))
    return keras.Model(
        inputs, layers.Dense(data.classes, activation="softmax")(layers.Flatten()(x))
    )


loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]


def callbacks():
    return [Averaging()]
