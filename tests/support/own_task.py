"""A small task that uses every optional part of a task file.

Texts of different lengths and a category, two outputs, a loss of both, and two forward passes with
different dropout in a step.
"""

import keras
import numpy as np
from keras import layers, ops

train = {"epochs": 2, "batch_size": 8}
sequences = ["words"]


def read(data):
    rng = np.random.default_rng(3)
    for patient in range(48):
        words = rng.integers(1, 20, rng.integers(1, 12))
        inputs = {
            "words": words,
            "age": np.float32(rng.normal()),
            "ward": ["north", "south", "west"][patient % 3],
        }
        targets = {
            "state": ["ill", "well"][int(words.mean() > 10)],
            "stay": np.float32(len(words) / 4),
        }
        yield inputs, targets, f"patient {patient // 2}"


def model(data):
    columns = data.inputs
    inputs = {
        name: keras.Input(each.shape, name=name, dtype=each.dtype)
        for name, each in columns.items()
    }
    words = layers.Embedding(20, 4, mask_zero=True)(inputs["words"])
    words = layers.GlobalAveragePooling1D()(layers.Dropout(0.1)(words))
    ward = layers.Embedding(len(columns["ward"].vocabulary), 2)(inputs["ward"])
    x = layers.Concatenate()([words, ward, layers.Reshape((1,))(inputs["age"])])
    x = layers.Dense(8, activation="relu")(x)
    x = layers.Dropout(0.2)(x)
    state = layers.Dense(2, activation="softmax", dtype=x.dtype, name="state")(x)
    return keras.Model(
        inputs, {"state": state, "stay": layers.Dense(1, name="stay")(x)}
    )


def loss(targets, outputs):
    state = keras.losses.sparse_categorical_crossentropy(
        targets["state"], outputs["state"]
    )
    stay = ops.square(targets["stay"] - outputs["stay"][:, 0])
    return state + 0.1 * ops.cast(stay, state.dtype)


def state_accuracy(targets, outputs):
    return ops.equal(
        ops.argmax(outputs["state"], axis=-1), ops.cast(targets["state"], "int64")
    )


def stay_error(targets, outputs):
    return ops.abs(targets["stay"] - outputs["stay"][:, 0])


metrics = [state_accuracy, stay_error]
better = {"state_accuracy": "higher", "stay_error": "lower"}


def training_losses(model, loss, inputs, targets):
    """The loss of one pass, plus the difference between the states of two passes with different dropout."""
    first, second = (model(inputs, training=True) for _ in range(2))
    return loss(targets, first) + ops.mean(
        ops.square(first["state"] - second["state"]), axis=-1
    )
