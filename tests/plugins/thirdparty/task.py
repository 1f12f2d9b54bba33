"""A task: classify the direction of stripes."""

import keras

kind = "classes"
data = "thirdparty:60"
train = {"epochs": 10, "batch_size": 10, "learning_rate": 0.02}
loss = "thirdparty"
metrics = ["thirdparty"]


def model(data):
    return keras.Sequential(
        [
            keras.Input(data.input_shape),
            keras.layers.Flatten(),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.Dense(data.classes, activation="softmax"),
        ]
    )
