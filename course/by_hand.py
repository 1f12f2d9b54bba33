"""Lesson 10's images, order of batches and model: for its scripts, and for its study as the task.

The scripts change none of it, so all runs begin with the same weights and take the same batches.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

DIGITS = Path(__file__).parent / "studies" / "digits.npz"
"""Written by the lesson's first cell."""
TRAINING, BATCH, EPOCHS, RATE = 1500, 50, 3, 0.5
"""Images to train on (the other 297 are validated on), and the settings of all runs."""


def read(_: Any = None) -> dict[str, Any]:
    """Return the digits: for each split, images [N, 64] and labels [N]."""
    with np.load(DIGITS) as digits:
        images, labels = digits["images"], digits["labels"]
    return {
        "train": (images[:TRAINING], labels[:TRAINING]),
        "validation": (images[TRAINING:], labels[TRAINING:]),
    }


def batches(epoch: int, batch: int = BATCH) -> Iterator[np.ndarray]:
    """Yield the rows of each global batch of an epoch, in the order that a study takes with seed 0."""
    order = np.random.Generator(np.random.Philox(key=[0, epoch])).permutation(TRAINING)
    yield from order.reshape(-1, batch)


def initial_weights(seed: int = 0) -> list[np.ndarray]:
    """Return kernels and biases of two dense layers."""
    draw = np.random.default_rng(seed)
    kernels = [draw.normal(0, 0.15, (64, 32)), draw.normal(0, 0.15, (32, 10))]
    return [kernels[0], np.zeros(32), kernels[1], np.zeros(10)]


def network(seed: int = 0) -> Any:
    """Build the Keras model: images [B, 64] to probabilities of the digits [B, 10]."""
    import keras  # noqa: PLC0415 - the script of PyTorch does without

    layers = [
        keras.Input((64,)),
        keras.layers.Dense(32, "relu"),
        keras.layers.Dense(10, "softmax"),
    ]
    model = keras.Sequential(layers)
    model.set_weights(initial_weights(seed))
    return model


def model(_: Any) -> Any:
    """Build the model of the study."""
    return network()


loss = "cross_entropy"
metrics = ["accuracy"]
