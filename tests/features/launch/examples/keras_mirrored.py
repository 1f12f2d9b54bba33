"""MirroredStrategy as in TensorFlow's documentation. An argument leaves the model out of its scope."""

import sys

import numpy as np
import tensorflow as tf

import scalestudy

tf.keras.utils.set_random_seed(0)
strategy = tf.distribute.MirroredStrategy()
images = np.random.default_rng(0).random((500, 20), dtype="float32")
labels = (images[:, :10].sum(1) > 5).astype("int32")


def build():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((20,)),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(2),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    return model


if "alone" in sys.argv:
    model = build()
else:
    with strategy.scope():
        model = build()
model.fit(
    images[:400],
    labels[:400],
    batch_size=30,
    epochs=3,
    validation_data=(images[400:], labels[400:]),
    verbose=0,
    callbacks=[scalestudy.workers().keras_callback("val_accuracy")],
)
