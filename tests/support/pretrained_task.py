"""A task with a pretrained backbone, for tests."""

import keras
from keras import layers

kind = "classes"
loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
pretrained = ["backbone"]


def model(data):
    inputs = keras.Input(data.input_shape)
    stack = [
        layers.Conv2D(4, 3),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.Flatten(),
    ]
    x = keras.Sequential([keras.Input(data.input_shape), *stack], name="backbone")(
        inputs
    )
    return keras.Model(
        inputs, layers.Dense(data.classes, "softmax")(layers.Dropout(0.1)(x))
    )
