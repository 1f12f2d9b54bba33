"""Models of `keras.applications` as classification tasks: "keras:EfficientNetV2B0"."""

import difflib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
from keras import layers
from numpy.typing import NDArray

from scalestudy.config.catalog import PREFIX, applications
from scalestudy.config.settings import ResolvedTrain
from scalestudy.tasks.task import DataInfo, output_dtype
from scalestudy.util.errors import UserError
from scalestudy.util.tracebacks import locate_error

kind = "classes"
train = {
    "epochs": 10,
    "batch_size": 32,
    "optimizer": "adam",
    "learning_rate": 1e-4,
    "weights": "imagenet",
    "input_scaling": "pretrained",
}
metrics = ["accuracy"]

PRETRAINED = "backbone"
"""Name of the layer that contains the pretrained weights."""
NONE, IMAGENET = "none", "imagenet"


def application_task(task: str) -> Any:
    """Return a task module for `load.task_of`: the model without its top, pooling, and a softmax.

    Raises:
        UserError: If there is no such model.
    """
    name = task.removeprefix(PREFIX)
    if not callable(getattr(keras.applications, name, None)):
        close = difflib.get_close_matches(name, applications(), n=3, cutoff=0.4)
        action = f"Choose one of {', '.join(applications())}."
        if close:
            action = f"Did you mean {' or '.join(close)}?"
        raise UserError(
            "the name of a model of keras.applications after keras:",
            name,
            action,
        )

    def model(data: DataInfo, train: ResolvedTrain) -> keras.Model:
        return classifier(name, data, train)

    return SimpleNamespace(
        __file__=task,
        kind=kind,
        train=train,
        model=model,
        pretrained=[PRETRAINED],
        loss="cross_entropy",
        metrics=metrics,
    )


def classifier(
    name: str,
    data: DataInfo,
    train: ResolvedTrain,
    hidden: int | None = None,
) -> keras.Model:
    """Build a classifier on the model `name` without its top.

    It maps images [B, H, W, C] in [0, 1] to probabilities [B, classes]. `hidden` adds a layer of that many
    units before the last one.
    """
    inputs = keras.Input(data.input_shape)
    x = prepared_input(inputs, name, train)
    x = backbone(name, tuple(x.shape[1:]), train.weights)(x)
    if len(x.shape) == 4:
        x = layers.GlobalAveragePooling2D()(x)
    if hidden:
        x = layers.Dense(hidden, activation="relu")(x)
    # The softmax is a layer of its own, so that the loss finds its logits.
    x = layers.Dense(data.classes)(x)
    outputs = layers.Activation("softmax", dtype=output_dtype())(x)
    return keras.Model(inputs, outputs, name=name.lower())


def prepared_input(inputs: Any, name: str, train: ResolvedTrain) -> Any:
    """Convert images [B, H, W, C] in [0, 1] to 3 channels and scale them as `train.input_scaling` asks.

    Raises:
        UserError: If the images do not have 1 or 3 channels.
    """
    channels = inputs.shape[-1]
    if channels not in (1, 3):
        raise UserError(
            f"images of 1 or 3 channels for {name}",
            f"{channels} channels",
            "Keep the channels that matter, or write your own task.",
        )
    x = inputs
    # Pretrained weights are of three channels.
    if channels == 1:
        x = layers.Concatenate(name="grey_three_times")([inputs] * 3)
    if train.input_scaling != "pretrained":
        return x
    order, scale, offset = preprocessing(name)
    if order != [0, 1, 2]:
        # Weights of Caffe expect BGR.
        x = x[..., ::-1]
    return layers.Rescaling(scale, offset, name="as_pretrained")(x)


def preprocessing(name: str) -> tuple[list[int], list[float], list[float]]:
    """Return the order, factors and offsets of channels that Keras's `preprocess_input` applies.

    They are for images in [0, 1], and are found by calling the function, which is affine for each pixel.
    """
    # Each family of models has its own, in the module that defines the models.
    function = sys.modules[
        getattr(keras.applications, name).__module__
    ].preprocess_input

    def of(pixel: Sequence[float]) -> NDArray[np.float64]:
        image = np.array(pixel, np.float32).reshape(1, 1, 1, 3) * 255
        return np.asarray(function(image), np.float64).reshape(3)

    # The function is affine: its value at 0 is the offset, the differences are the factors.
    offset = of([0, 0, 0])
    factors = np.stack([of(np.eye(3)[channel]) - offset for channel in range(3)])
    order = [int(np.argmax(np.abs(factors[:, channel]))) for channel in range(3)]
    scale = [float(factors[source, channel]) for channel, source in enumerate(order)]
    return order, scale, offset.tolist()


def backbone(name: str, shape: tuple[int, ...], weights: str | None) -> keras.Model:
    """Build a model of `keras.applications` without its top; `weights`: "imagenet", a path, or "none".

    Raises:
        UserError: If the weights are missing or do not fit, or if images are too small for the model.
    """
    source = None
    if weights not in (NONE, None):
        source = str(weights)
    if source not in (None, IMAGENET) and not Path(str(source)).is_file():
        raise UserError(
            f'"imagenet", "none" or a file of weights for {name} as train.weights',
            f"{source}, which is no file",
            "Correct the path. It is relative to the study file.",
        )
    try:
        model = getattr(keras.applications, name)(
            weights=source,
            include_top=False,
            input_shape=shape,
        )
        model.name = PRETRAINED  # not as an argument: EfficientNetV2 would look for blocks of that name
        return model
    except Exception as error:
        raise _explain(name, shape, source, error) from error


def _explain(
    name: str,
    shape: tuple[int, ...],
    source: str | None,
    error: Exception,
) -> UserError:
    url = re.search(r"https?://[^\s,;]+", str(error))
    if source == IMAGENET and url:
        address = url[0].rstrip(":.")
        home = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
        return UserError(
            f"the ImageNet weights of {name} in {home / 'models' / address.rpartition('/')[2]}, as Keras "
            "publishes them",
            error.received if isinstance(error, UserError) else locate_error(error),
            f"Run `scalestudy data prepare STUDY` where there is a network, or fetch {address} and put it"
            ' there; train.weights = "PATH" takes a file anywhere, and "none" trains from scratch.',
        )
    of_size = "input_shape" in str(error) or "nput size" in str(error)
    if source is not None and not of_size:
        return UserError(
            f"weights of {name} without its top layers",
            f"{source}: {locate_error(error)}",
            "Use the file of exactly this model. Keras's files without the top layers end with _notop.h5.",
        )
    return UserError(
        f"images that {name} accepts",
        f"{shape[0]} x {shape[1]} pixels: {locate_error(error)}",
        "Choose a larger image_size under [data].",
    )
